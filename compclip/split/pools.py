"""The pools of captions from which distractors are drawn, and the number of candidates that they
allow.
"""

import pandas as pd

from compclip.core.errors import require
from compclip.core.tables import CAPTION_KEY, TESTS

CANDIDATES = 100  # as published


def pool_captions(
    captions: pd.DataFrame,
    judged: pd.DataFrame,
    swapped: pd.DataFrame,
    split: str,
    distractors: str,
) -> pd.DataFrame:
    """Return image_id, caption_id and text of the possible distractors in ``split``.

    Seen and unseen: all captions of the split's judged images. Swapped: captions of the judged
    images of test_seen that have a swapped caption: with ``distractors`` "original" all their
    original captions, with "swapped" their swapped captions, with "published" the originals of the
    swapped captions only, as in the released code.
    """
    source = captions if distractors == "original" else swapped
    if distractors == "swapped":
        source = swapped.assign(text=swapped["swapped_text"])
    in_pool = source["image_id"].isin(pool_images(judged, swapped, split))
    return source.loc[in_pool, [*CAPTION_KEY, "text"]].sort_values(CAPTION_KEY, ignore_index=True)


def pool_images(judged: pd.DataFrame, swapped: pd.DataFrame, split: str) -> set[str]:
    """Return the images whose captions are possible distractors in ``split``."""
    source = "test_seen" if split == "test_swapped" else split
    images = set(judged.loc[judged["split"] == source, "image_id"])
    return images & set(swapped["image_id"]) if split == "test_swapped" else images


def class_names(captions: pd.DataFrame) -> pd.Series:
    """Return the class of each image, by image_id; an image without a class is its own class."""
    texts = captions.drop_duplicates("image_id").astype({"image_id": "str", "class_id": "str"})
    by_image = texts.set_index("image_id")["class_id"]
    own = pd.Series("image " + by_image.index, index=by_image.index)
    return ("class " + by_image).where(by_image.notna(), own)


def least_distractors(
    captions: pd.DataFrame, judged: pd.DataFrame, swapped: pd.DataFrame, prompts: pd.DataFrame
) -> dict[str, int]:
    """Return, by test split, the smallest number of captions of other classes that a prompted image
    has.
    """
    classes = class_names(captions)
    least = {}
    for split in TESTS:
        images = prompts.loc[prompts["split"] == split, "image_id"].unique().astype("str")
        if len(images):
            in_pool = captions["image_id"].isin(pool_images(judged, swapped, split))
            of_pool = captions.loc[in_pool, "image_id"].astype("str").map(classes)
            own = of_pool.value_counts().reindex(classes[images].unique(), fill_value=0)
            least[split] = len(of_pool) - int(own.max())
    return least


def bounded(candidates: int | None, least: dict[str, int], where: str) -> int:
    """Return the number of candidates: ``candidates`` or, if None, as published or as many as there
    are.

    Raises:
        UserError: a split of ``least_distractors`` has too few distractors. If it has none, scoring
            names the reason.
    """
    wanted = candidates or CANDIDATES
    few = {split: number for split, number in least.items() if 0 < number < wanted - 1}
    if not few:
        return wanted
    split = min(few, key=lambda name: few[name])
    need = f"{wanted} candidates need {wanted - 1} captions of other classes as distractors"
    fault = f"{need}, but {split} of {where} has only {few[split]}"
    require(
        candidates is None,
        "score.candidates",
        fault,
        f"set it to at most {few[split] + 1}, or add images",
    )
    return few[split] + 1
