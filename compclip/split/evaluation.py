"""Which test images are judged, and which images train the judge."""

from collections.abc import Iterable
from typing import Annotated

import pandas as pd
from pydantic import Field

from compclip.core.seeds import rng
from compclip.core.settings.arguments import Images, Splits, Whole, require_joined
from compclip.core.settings.calls import checked


def _with_training(splits: pd.DataFrame, images: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the images with a file, and a column ``trains``: whether they train a judge that
    trains on half.

    All images of train do, and of each test split those that come first in one random order of all
    images. This order is the same for all compositions, so an image that two of them test is mostly
    judged in both or in neither. If the number is odd, the judged half is the larger.
    """
    with_file = images.loc[images["path"].notna(), "image_id"]
    if len(with_file):  # without any file, all images count
        splits = splits[splits["image_id"].isin(with_file)]
    table = splits.sort_values("image_id", ignore_index=True)
    # One order of all images, whatever the composition. The stream keeps the name under which
    # former runs drew it, so that their halves stay.
    order = rng(seed, "judged_images").permutation(len(images))
    order_of_image = pd.Series(order, index=sorted(images["image_id"]))
    rank = table["image_id"].map(order_of_image).groupby(table["split"]).rank(method="first")
    size_of_split = table["split"].value_counts()
    is_first_half = rank <= table["split"].map(size_of_split) // 2
    return table.assign(trains=is_first_half | (table["split"] == "train"))


@checked
def evaluation_images(
    splits: Splits,
    images: Images,
    train_on: Annotated[str, Field(pattern="^(train|half|all)$")],
    seed: Whole,
) -> pd.DataFrame:
    """Return the test images that may be prompted for and judged.

    Args:
        splits: image_id and split.
        images: image_id and path; if only some images have a file, only those are judged.
        train_on: ``half``: a seeded half of each test split is judged, the other trains the judge;
            other values: all are judged.

    Returns:
        image_id and split, sorted by split and image_id.

    Raises:
        UserError: an image of splits is not among images, or an argument is refused
            (docs/library.md).
    """
    require_joined(images, "images", splits=splits)
    rows = _with_training(splits, images, seed)
    if train_on == "half":
        rows = rows[~rows["trains"]]
    rows = rows[rows["split"] != "train"]
    return rows[["image_id", "split"]].sort_values(["split", "image_id"], ignore_index=True)


def judge_training_images(
    splits: Iterable[pd.DataFrame], images: pd.DataFrame, train_on: str, seed: int
) -> list[str]:
    """Return the images that train the judge, sorted: those that may train it in all compositions
    that it judges.

    Args:
        splits: image_id and split, for each composition.
        images, train_on, seed: as in ``evaluation_images``; ``half``: train and the test images
            that are not judged.
    """
    allowed = []
    for composition_splits in splits:
        # An image that another composition judges must not train.
        rows = _with_training(composition_splits, images, seed)
        if train_on == "half":
            rows = rows[rows["trains"]]
        elif train_on == "train":
            rows = rows[rows["split"] == "train"]
        allowed.append(set(rows["image_id"]))
    return sorted(set.intersection(*allowed))
