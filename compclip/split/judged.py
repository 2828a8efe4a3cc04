"""Which test images are judged, and which images train the judge."""

import pandas as pd

from compclip.core.seeds import rng


def _with_file(splits: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """Return ``splits``, sorted, without images that have no file, unless no image has one."""
    with_file = images.loc[images["path"].notna(), "image_id"]
    kept = splits[splits["image_id"].isin(with_file)] if len(with_file) else splits
    return kept.sort_values("image_id", ignore_index=True)


def _learning(splits: pd.DataFrame, seed: int) -> list[str]:
    """Return the half of each test split's images that trains the judge.

    The split's name is a key of the draw, so that one split's size does not change the other's halves. Of an odd
    number, the judged half is the larger.
    """
    learning = []
    for split in ("test_seen", "test_unseen"):
        images = splits.loc[splits["split"] == split, "image_id"]
        place = rng(seed, "judged_images", split).permutation(len(images))
        learning += images[place < len(images) // 2].tolist()
    return learning


def judged_images(splits: pd.DataFrame, images: pd.DataFrame, train_on: str, seed: int) -> pd.DataFrame:
    """Return the test images that may be prompted for and judged.

    Args:
        splits: image_id and split.
        images: image_id and path; if some images have a file and others none, only those with a file are judged.
        train_on: ``half``: a seeded half of each test split is judged, since the other trains the judge; anything
            else: every test image.

    Returns:
        image_id and split, sorted by split and image_id.
    """
    kept = _with_file(splits, images)
    tests = kept[kept["split"] != "train"]
    if train_on == "half":
        tests = tests[~tests["image_id"].isin(_learning(kept, seed))]
    return tests[["image_id", "split"]].sort_values(["split", "image_id"], ignore_index=True)


def judge_images(splits: pd.DataFrame, images: pd.DataFrame, train_on: str, seed: int) -> list[str]:
    """Return the images that train the judge, sorted: with ``half``, train and the test images that are not judged."""
    kept = _with_file(splits, images)
    if train_on == "all":
        return kept["image_id"].tolist()
    learning = _learning(kept, seed) if train_on == "half" else []
    return sorted([*kept.loc[kept["split"] == "train", "image_id"], *learning])
