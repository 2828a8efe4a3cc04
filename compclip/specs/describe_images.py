"""Describe drawn birds at length: descriptions for training, and growing ones with wrong details for testing."""

from pathlib import Path

import numpy as np
import pandas as pd

from compclip.core import cli, tables
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.dataset.sketch.description import count_values, describe, grow, shorten
from compclip.dataset.sketch.world import ATTRIBUTES, Dice
from compclip.io import read_frame, read_table, write_table
from compclip.specs.steps import DescribeImages

SHORT_CAPTIONS = 4  # of each image


def divide(images: list[str], test: int, seed: int) -> pd.DataFrame:
    """Draw ``test`` test images (split test_seen); the others are training images."""
    fault = f"{test} of {len(images)} images leave fewer than two to train on"
    require(len(images) >= test + 2, "specs.test", fault, "lower it")
    tested = set(rng(seed, "describe_images").permutation(len(images))[:test].tolist())
    split = ["test_seen" if place in tested else "train" for place in range(len(images))]
    return pd.DataFrame({"image_id": images, "split": split})


def main(step: DescribeImages) -> None:
    scenes = read_frame(step.scenes).sort_values("image_id", ignore_index=True)
    paths = read_table(step.images, tables.IMAGES).set_index("image_id")["path"]
    splits = divide(scenes["image_id"].tolist(), step.test, step.seed)
    values = scenes[list(ATTRIBUTES)].astype(object).where(scenes[list(ATTRIBUTES)].notna(), None).to_dict("records")
    frequencies = count_values(values)  # decide how often a wrong value is drawn
    rows: dict[str, list[tuple]] = {"examples": [], "steps": [], "captions": []}
    for image, split, scene in zip(splits["image_id"], splits["split"], values, strict=True):
        # The words depend on the seed and the image's own scene.
        dice, file = Dice(rng(step.seed, "describe_images", image)), Path(paths[image]).name
        grown = grow(describe(scene, frequencies, dice))
        # Each from a description of its own.
        short = [shorten(describe(scene, frequencies, dice), dice) for _ in range(SHORT_CAPTIONS)]
        rows["captions"] += [(image, number, None, text) for number, text in enumerate(short)]
        if split == "train":
            rows["examples"].append((file, grown[-1][0]))
        else:
            rows["steps"] += [(file, 0, number, *texts) for number, texts in enumerate(grown)]
    for name, schema in (("examples", tables.EXAMPLES), ("steps", tables.STEPS), ("captions", tables.CAPTIONS)):
        table = pd.DataFrame(rows[name], columns=list(schema.columns))
        write_table(table.astype({"class_id": "str"} if name == "captions" else {}), getattr(step, name), schema)
    write_table(splits, step.splits, tables.SPLIT)
    words = np.mean([len(text.split()) for _, text in rows["examples"]])
    log.info(
        "%d training descriptions with %.0f words on average, %d for tests", len(rows["examples"]), words, step.test
    )


if __name__ == "__main__":
    cli.run(main)
