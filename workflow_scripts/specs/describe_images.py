"""Describe drawn birds at length: descriptions for training, and growing ones with wrong details for testing."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from workflow_scripts.core import cli, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_frame, read_table, write_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.dataset.sketch.description import count_values, describe, grow, shorten
from workflow_scripts.dataset.sketch.world import ATTRIBUTES, Dice
from workflow_scripts.specs.steps import DescribeImages

SHORT_CAPTIONS = 4  # of each image


def divide(images: list[str], test: int, seed: int) -> pd.DataFrame:
    """Draw ``test`` test images (split test_seen); the others are training images."""
    if len(images) < test + 2:
        raise UserError(f"specs.test: {test} of {len(images)} images leave fewer than two to train on; lower it")
    tested = set(rng(seed, "describe_images").permutation(len(images))[:test].tolist())
    split = ["test_seen" if place in tested else "train" for place in range(len(images))]
    return pd.DataFrame({"image_id": images, "split": split})


@dataclass(frozen=True)
class Description:
    steps: list[tuple[str, str | None]]  # the description up to each sentence, also with a wrong last one (``grow``)
    short: list[str]  # each from a description of its own


def describe_all(scenes: pd.DataFrame, seed: int) -> dict[str, Description]:
    """Describe every image of ``scenes``, which has a row per image and the columns of scenes.parquet.

    The words depend on the seed and the image's own scene; the frequency of a wrong value depends on all scenes.
    """
    values = scenes[list(ATTRIBUTES)].astype(object).where(scenes[list(ATTRIBUTES)].notna(), None).to_dict("records")
    frequencies = count_values(values)
    descriptions = {}
    for image, scene in zip(scenes["image_id"], values, strict=True):
        dice = Dice(rng(seed, "describe_images", image))
        steps = grow(describe(scene, frequencies, dice))
        short = [shorten(describe(scene, frequencies, dice), dice) for _ in range(SHORT_CAPTIONS)]
        descriptions[image] = Description(steps, short)
    return descriptions


def main(step: DescribeImages) -> None:
    scenes = read_frame(step.scenes).sort_values("image_id", ignore_index=True)
    paths = read_table(step.images, tables.IMAGES).set_index("image_id")["path"]
    splits = divide(scenes["image_id"].tolist(), step.test, step.seed)
    descriptions = describe_all(scenes, step.seed)
    files = {image: Path(paths[image]).name for image in splits["image_id"]}
    train, test = (splits.loc[splits["split"] == split, "image_id"] for split in ("train", "test_seen"))
    examples = pd.DataFrame([(files[i], descriptions[i].steps[-1][0]) for i in train], columns=["image", "text"])
    steps = pd.DataFrame(
        [(files[i], 0, number, *texts) for i in test for number, texts in enumerate(descriptions[i].steps)],
        columns=["image", "caption_id", "step", "text", "negative"],
    )
    captions = pd.DataFrame(
        [(i, number, text) for i, described in descriptions.items() for number, text in enumerate(described.short)],
        columns=["image_id", "caption_id", "text"],
    )
    captions.insert(2, "class_id", pd.Series([None] * len(captions), dtype="str"))
    write_table(captions, step.captions, tables.CAPTIONS)
    write_table(examples, step.examples, tables.EXAMPLES)
    write_table(steps, step.steps, tables.STEPS)
    write_table(splits, step.splits, tables.SPLIT)
    log.info(
        "%d training descriptions with %.0f words on average; %d test descriptions with %d steps",
        len(examples), np.mean([len(text.split()) for text in examples["text"]]), len(test), len(steps),
    )  # fmt: skip


if __name__ == "__main__":
    cli.run(main)
