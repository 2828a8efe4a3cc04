"""Describe drawn birds at length: descriptions for training, and growing ones with wrong details for testing."""

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


def main(step: DescribeImages) -> None:
    scenes = read_frame(step.scenes).sort_values("image_id", ignore_index=True)
    paths = read_table(step.images, tables.IMAGES).set_index("image_id")["path"]
    splits = divide(scenes["image_id"].tolist(), step.test, step.seed)
    values = scenes[list(ATTRIBUTES)].astype(object).where(scenes[list(ATTRIBUTES)].notna(), None).to_dict("records")
    frequencies = count_values(values)  # decide how often a wrong value is drawn
    examples, steps, captions = [], [], []
    for image, split, scene in zip(splits["image_id"], splits["split"], values, strict=True):
        # The words depend on the seed and the image's own scene.
        dice, file = Dice(rng(step.seed, "describe_images", image)), Path(paths[image]).name
        grown = grow(describe(scene, frequencies, dice))
        # Each from a description of its own.
        short = [shorten(describe(scene, frequencies, dice), dice) for _ in range(SHORT_CAPTIONS)]
        captions += [(image, number, None, text) for number, text in enumerate(short)]
        if split == "train":
            examples.append((file, grown[-1][0]))
        else:
            steps += [(file, 0, number, *texts) for number, texts in enumerate(grown)]
    captions_table = pd.DataFrame(captions, columns=list(tables.CAPTIONS.columns)).astype({"class_id": "str"})
    write_table(captions_table, step.captions, tables.CAPTIONS)
    write_table(pd.DataFrame(examples, columns=list(tables.EXAMPLES.columns)), step.examples, tables.EXAMPLES)
    write_table(pd.DataFrame(steps, columns=list(tables.STEPS.columns)), step.steps, tables.STEPS)
    write_table(splits, step.splits, tables.SPLIT)
    log.info(
        "%d training descriptions with %.0f words on average; %d test descriptions with %d steps",
        len(examples), np.mean([len(text.split()) for _, text in examples]), step.test, len(steps),
    )  # fmt: skip


if __name__ == "__main__":
    cli.run(main)
