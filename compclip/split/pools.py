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
    if distractors == "original":
        source = captions
    elif distractors == "swapped":
        # As distractors, captions that describe no image.
        source = swapped.assign(text=swapped["swapped_text"])
    else:
        source = swapped
    in_pool = source["image_id"].isin(pool_images(judged, swapped, split))
    pool = source.loc[in_pool, [*CAPTION_KEY, "text"]]
    return pool.sort_values(CAPTION_KEY, ignore_index=True)


class Pools:
    """The pools of ``pool_captions``; all generators share them, so each is made once."""

    def __init__(self, captions: pd.DataFrame, judged: pd.DataFrame, swapped: pd.DataFrame) -> None:
        self.tables = captions, judged, swapped
        self.made: dict[tuple[str, str], pd.DataFrame] = {}

    def of_set(self, split: str, distractors: str) -> pd.DataFrame:
        """Return the pool of a split; not to be changed."""
        if (split, distractors) not in self.made:
            self.made[split, distractors] = pool_captions(*self.tables, split, distractors)
        return self.made[split, distractors]


def pool_images(judged: pd.DataFrame, swapped: pd.DataFrame, split: str) -> set[str]:
    """Return the images whose captions are possible distractors in ``split``."""
    if split != "test_swapped":
        return set(judged.loc[judged["split"] == split, "image_id"])
    is_seen = judged["split"] == "test_seen"
    seen = judged.loc[is_seen, "image_id"]
    return set(seen) & set(swapped["image_id"])


def class_names(captions: pd.DataFrame) -> pd.Series:
    """Return the class of each image, by image_id; an image without a class is its own class."""
    images = captions.drop_duplicates("image_id").astype({"image_id": "str", "class_id": "str"})
    class_ids = images.set_index("image_id")["class_id"]
    # The prefixes keep an image's id apart from a class of the same name.
    single = pd.Series("image " + class_ids.index, index=class_ids.index)
    return ("class " + class_ids).where(class_ids.notna(), single)


def least_distractors(
    captions: pd.DataFrame, judged: pd.DataFrame, swapped: pd.DataFrame, prompts: pd.DataFrame
) -> dict[str, int]:
    """Return, by test split, the smallest number of captions of other classes that a prompted image
    has.
    """
    class_of = class_names(captions)
    distractors = {}
    for split in TESTS:
        images = prompts.loc[prompts["split"] == split, "image_id"].unique().astype("str")
        if not len(images):
            continue
        pool = pool_images(judged, swapped, split)
        in_pool = captions["image_id"].isin(pool)
        pool_classes = captions.loc[in_pool, "image_id"].astype("str").map(class_of)
        prompted_classes = class_of[images].unique()
        # An image of the class with the most captions has the fewest distractors.
        sizes = pool_classes.value_counts().reindex(prompted_classes, fill_value=0)
        distractors[split] = len(pool_classes) - int(sizes.max())
    return distractors


def choose_candidates(candidates: int | None, distractors: dict[str, int], where: str) -> int:
    """Return the number of candidates: ``candidates`` or, if None, as published or as many as there
    are.

    Raises:
        UserError: a split of ``least_distractors`` has too few distractors. If it has none, scoring
            names the reason.
    """
    wanted = candidates or CANDIDATES
    few = {split: number for split, number in distractors.items() if 0 < number < wanted - 1}
    if not few:
        return wanted
    split = min(few, key=lambda name: few[name])
    possible = few[split] + 1  # with the image's own caption
    fault = (
        f"{wanted} candidates need {wanted - 1} captions of other classes as distractors, but "
        f"{split} of {where} has only {few[split]}"
    )
    remedy = f"set it to at most {possible}, or add images"
    require(candidates is None, "score.candidates", fault, remedy)
    return possible
