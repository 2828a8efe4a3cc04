"""Describe drawn birds at length: descriptions to train on, and growing ones with wrong details to test on.

Writes examples.parquet (image, text), steps.parquet (image, caption_id, step, text, negative: the form that
workflow_scripts.specs.intrinsic reads), captions.parquet, short ones from which a CLIP learns first, and
splits.parquet, whose train and test_seen say which bird serves for what.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from workflow_scripts.core import cli, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.dataset.sketch.description import count_values, describe, grow, shorten
from workflow_scripts.dataset.sketch.world import ATTRIBUTES, Dice

# Short captions of an image.
SHORT_ONES = 4


def divide(images: list[str], test: int, seed: int) -> pd.DataFrame:
    """Which images train and which ``test`` of them, drawn by seed, test; columns of ``tables.SPLIT``.

    Raises UserError where too few are left to train on.
    """
    if len(images) < test + 2:
        raise UserError(f"specs.test: {test} of {len(images)} images leave fewer than two to train on: lower it")
    tested = set(rng(seed, "describe_images").permutation(len(images))[:test].tolist())
    split = ["test_seen" if place in tested else "train" for place in range(len(images))]
    return pd.DataFrame({"image_id": images, "split": split})


@dataclass(frozen=True)
class Described:
    """An image's description up to each sentence, with that sentence wrong beside it (``description.grow``), and
    short captions, each from a description of its own."""

    steps: list[tuple[str, str | None]]
    short: list[str]


def describe_all(scenes: pd.DataFrame, seed: int) -> dict[str, Described]:
    """Every image's descriptions. scenes: a row an image, with the columns of scenes.parquet.

    An image's words depend on the seed and on its own scene; how often a wrong value is chosen depends on all scenes.
    """
    known = scenes[list(ATTRIBUTES)].astype(object).where(scenes[list(ATTRIBUTES)].notna(), None).to_dict("records")
    frequencies = count_values(known)
    found = {}
    for image, scene in zip(scenes["image_id"], known, strict=True):
        dice = Dice(rng(seed, "describe_images", image))
        steps = grow(describe(scene, frequencies, dice))
        found[image] = Described(steps, [shorten(describe(scene, frequencies, dice), dice) for _ in range(SHORT_ONES)])
    return found


def main(options: argparse.Namespace) -> None:
    scenes = pd.read_parquet(options.scenes).sort_values("image_id", ignore_index=True)
    images = read_table(options.images, tables.IMAGES).set_index("image_id")["path"]
    splits = divide(scenes["image_id"].tolist(), options.test, options.seed)
    told = describe_all(scenes, options.seed)
    files = {image: Path(images[image]).name for image in splits["image_id"]}
    trained, tested = (splits.loc[splits["split"] == split, "image_id"] for split in ("train", "test_seen"))
    examples = pd.DataFrame([(files[i], told[i].steps[-1][0]) for i in trained], columns=["image", "text"])
    steps = pd.DataFrame(
        [(files[i], 0, number, *pair) for i in tested for number, pair in enumerate(told[i].steps)],
        columns=["image", "caption_id", "step", "text", "negative"],
    )
    captions = pd.DataFrame(
        [(i, number, text) for i in told for number, text in enumerate(told[i].short)],
        columns=["image_id", "caption_id", "text"],
    )
    captions.insert(2, "class_id", pd.Series([None] * len(captions), dtype="str"))
    write_table(captions, options.folder / "captions.parquet", tables.CAPTIONS)
    write_table(examples, options.folder / "examples.parquet", tables.EXAMPLES)
    write_table(steps, options.folder / "steps.parquet", tables.STEPS)
    write_table(splits, options.folder / "splits.parquet", tables.SPLIT)
    words = np.mean([len(text.split()) for text in examples["text"]])
    log.info(
        "%d descriptions to train on, of %.0f words on average; %d to test on, in %d steps",
        len(examples), words, len(tested), len(steps),
    )  # fmt: skip


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--scenes", type=Path, required=True, help="scenes.parquet of the sketches")
    parser.add_argument("--images", type=Path, required=True, help="images.parquet")
    parser.add_argument("--test", type=int, default=1000, help="images that test (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True, help="where the tables go")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
