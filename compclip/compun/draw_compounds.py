"""Draw compounds: a list, three images of each, texts about them, and pictures to train small CLIPs on."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from compclip.compun.config import TRAININGS
from compclip.compun.drawn import (
    NOUNS,
    PAIRS,
    SIZE,
    Compound,
    Thing,
    draw_thing,
    make_compounds,
    paint,
    without_colors,
    write_caption,
    write_descriptions,
    write_examples,
)  # fmt: skip
from compclip.compun.steps import DrawCompounds
from compclip.core import cli, seeds, tables
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.dataset.sketch.draw import png
from compclip.dataset.sketch.world import Dice
from compclip.io import atomic_folder, empty_table, write_json, write_table, write_text

CAPTIONS = 6  # of a training picture
WATCHED = 60  # pictures of single things that are watched while a CLIP trains, and not trained on
EACH = 8  # training pictures of a compound
PAIR_FRACTION = 1 / 3  # training pictures of two things, for each of a single thing


class Picture(NamedTuple):
    """What a training picture shows, of which compound; ``part``: of ``both`` trainings, ``taught``, or ``watched``."""

    things: tuple[Thing, ...]
    compound: Compound | None
    part: str
    dice: Dice


def training_pictures(
    tested: Sequence[Compound], others: Sequence[Compound], things: int, seed: int
) -> Iterator[Picture]:
    """Yield what the training pictures show, each with random numbers of its own."""
    apart = {frozenset((compound.first, compound.second)) for compound in tested}
    free = [pair for pair in PAIRS if frozenset(pair) not in apart]
    require(free, "compun.drawn", "any two nouns are a tested compound", "lower tested")

    def dice_of(*keys: str | int) -> Dice:
        return Dice(seeds.rng(seed, "draw_compounds", *keys))

    for part, number in (("both", things), ("watched", WATCHED)):
        for index in range(number):
            dice = dice_of(part, "thing", index)
            yield Picture((draw_thing(NOUNS[index % len(NOUNS)], dice),), None, part, dice)
    for index in range(int(things * PAIR_FRACTION)):
        dice = dice_of("pair", index)
        one, other = (draw_thing(noun, dice, plain=0.7) for noun in dice.pick(free))
        yield Picture((one, other), None, "both", dice)
    for part, compounds in (("both", others), ("taught", tested)):
        for compound in compounds:
            for index in range(EACH):
                yield Picture(compound.things, compound, part, dice_of(part, compound.name, index))


def write_training(pictures: Sequence[Picture], folder: Path, results: Path) -> dict[str, int]:
    """Write the pictures, their captions, and a table of splits for each training; return its number of images."""
    captions = []
    ids = [f"{index:05d}" for index in range(len(pictures))]
    with atomic_folder(folder / "images") as images:
        for image_id, picture in zip(ids, track(pictures, len(pictures), "training pictures"), strict=True):
            (images / f"{image_id}.png").write_bytes(png(paint(picture.things, picture.dice)))
            texts = [write_caption(picture.things, picture.compound, picture.dice) for _ in range(CAPTIONS)]
            captions += [(image_id, number, None, text) for number, text in enumerate(texts)]
    place = (folder / "images").relative_to(results)
    table = empty_table(tables.IMAGES).reindex(range(len(ids)))
    table = table.assign(image_id=ids, path=[f"{place}/{name}.png" for name in ids], width=SIZE, height=SIZE)
    write_table(table.astype({"width": "Int64", "height": "Int64"}), folder / "images.parquet", tables.IMAGES)
    texts = pd.DataFrame(captions, columns=["image_id", "caption_id", "class_id", "text"])
    write_table(texts.astype({"class_id": "str"}), folder / "captions.parquet", tables.CAPTIONS)
    trained = {}
    for training in TRAININGS:
        split = {"both": "train", "watched": "test_seen"} | ({"taught": "train"} if training == "taught" else {})
        splits = pd.DataFrame({"image_id": ids, "split": [split.get(picture.part) for picture in pictures]}).dropna()
        write_table(splits, folder / f"{training}.parquet", tables.SPLIT)
        trained[training] = int((splits["split"] == "train").sum())
    return trained


def main(step: DrawCompounds) -> None:
    tested, folder = step.drawn.tested, step.folder
    compounds = make_compounds(step.seed, tested + tested // 2)
    captions, descriptions = {}, {}
    with atomic_folder(folder / "images") as images:
        for compound in compounds[:tested]:
            dice = Dice(seeds.rng(step.seed, "draw_compounds", "tested", compound.name))
            nouns = {"_n1": compound.first, "_n2": compound.second}
            shown = {ending: (without_colors(noun, compound.things, dice),) for ending, noun in nouns.items()}
            for ending, things in ({"": compound.things} | shown).items():
                (images / f"{compound.name}{ending}.png").write_bytes(png(paint(things, dice)))
            captions[compound.name] = write_examples(compound, dice)
            descriptions[compound.name] = write_descriptions(compound)
    listed = pd.DataFrame(compounds[:tested])[["name", "first", "second", "kind"]].rename(columns={"name": "compound"})
    write_text(listed.to_csv(index=False, lineterminator="\n"), folder / "list.csv")
    write_json(captions, folder / "captions.json")
    write_json(descriptions, folder / "descriptions.json")
    pictures = list(training_pictures(compounds[:tested], compounds[tested:], step.drawn.things, step.seed))
    trained = write_training(pictures, folder / "training", step.results)
    log.info("%d compounds to test, %d others, training pictures: %s", tested, len(compounds) - tested, trained)


if __name__ == "__main__":
    cli.run(main)
