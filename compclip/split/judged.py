"""Which test images are judged, and which images train the judge."""

import pandas as pd

from compclip.core.seeds import rng
from compclip.core.tables import SPLITS

TESTED = tuple(split for split in SPLITS if split != "train")


def _with_file(splits: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """Return ``splits`` without images that have no file, unless no image has one."""
    with_file = images.loc[images["path"].notna(), "image_id"]
    kept = splits[splits["image_id"].isin(with_file)] if len(with_file) else splits
    return kept.sort_values("image_id", ignore_index=True)


def _halves(splits: pd.DataFrame, images: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the test images with a column ``learns``: whether they are in the half of their split that trains.

    The split's name is a key of the draw, so that one split's size does not change the other's halves. Of an odd
    number, the judged half is the larger.
    """
    tests = _with_file(splits, images)
    halves = []
    for split in TESTED:
        rows = tests[tests["split"] == split]
        place = rng(seed, "judged_images", split).permutation(len(rows))
        halves.append(rows.assign(learns=place < len(rows) // 2))
    return pd.concat(halves, ignore_index=True)


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
    tests = _halves(splits, images, seed)
    kept = tests[~tests["learns"]] if train_on == "half" else tests
    return kept[["image_id", "split"]].sort_values(["split", "image_id"], ignore_index=True)


def judge_images(splits: pd.DataFrame, images: pd.DataFrame, train_on: str, seed: int) -> list[str]:
    """Return the images that train the judge, sorted: with ``half``, train and the test images that are not judged."""
    kept = _with_file(splits, images)
    if train_on == "all":
        return kept["image_id"].tolist()
    train = kept.loc[kept["split"] == "train", "image_id"].tolist()
    if train_on == "half":
        halves = _halves(splits, images, seed)
        train += halves.loc[halves["learns"], "image_id"].tolist()
    return sorted(train)
