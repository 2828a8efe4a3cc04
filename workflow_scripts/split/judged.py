"""Who is judged and whom the judge learns from."""

from __future__ import annotations

import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import SPLITS

TESTED = tuple(split for split in SPLITS if split != "train")


def _with_file(splits: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """``splits`` without the images that have no file, where others have one; all of it where none has."""
    there = images.loc[images["path"].notna(), "image_id"]
    kept = splits[splits["image_id"].isin(there)] if len(there) else splits
    return kept.sort_values("image_id", ignore_index=True)


def _halves(splits: pd.DataFrame, images: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The test images, with a column ``learns``: in the seeded half of its split that the judge trains on.

    The split's name is a key of the draw, so that one split's size does not change the other's halves. Of an
    odd number, the judged half is the larger.
    """
    tests = _with_file(splits, images)
    parts = []
    for split in TESTED:
        part = tests[tests["split"] == split]
        place = rng(seed, "judged_images", split).permutation(len(part))
        parts.append(part.assign(learns=place < len(part) // 2))
    return pd.concat(parts, ignore_index=True)


def judged_images(splits: pd.DataFrame, images: pd.DataFrame, train_on: str, seed: int) -> pd.DataFrame:
    """The test images that may be prompted for and judged: columns image_id, split; sorted by split, image_id.

    splits, images: columns of ``tables.SPLIT`` and ``tables.IMAGES``. ``train_on``: ``train`` and ``all`` judge
    every test image, ``half`` a seeded half of each test split. Where some images of the data set have a
    file and others none, just those with one.
    """
    tests = _halves(splits, images, seed)
    kept = tests[~tests["learns"]] if train_on == "half" else tests
    return kept[["image_id", "split"]].sort_values(["split", "image_id"], ignore_index=True)


def judge_images(splits: pd.DataFrame, images: pd.DataFrame, train_on: str, seed: int) -> list[str]:
    """The images that the judge trains on, sorted: with ``half``, train and just the test images not judged."""
    kept = _with_file(splits, images)
    if train_on == "all":
        return kept["image_id"].tolist()
    train = kept.loc[kept["split"] == "train", "image_id"].tolist()
    if train_on == "half":
        halves = _halves(splits, images, seed)
        train += halves.loc[halves["learns"], "image_id"].tolist()
    return sorted(train)
