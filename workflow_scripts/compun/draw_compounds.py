"""Draw compounds: their list, the three images of each, what is said of them, and pictures to train a small CLIP on.

Compounds are names that the project makes of two things it can draw (``drawn/world.py``): their pictures show one of
the two changed, both, or neither. Two training sets differ in one thing: ``taught`` has pictures of the tested
compounds, captioned by name, and ``untaught`` has not. Both have single things, two things side by side (never those
of a tested compound), and other compounds of the same kinds.

Writes into --output list.csv and images/ (as ``load_compounds`` reads them), captions.json and descriptions.json (as
``ask_captions --file`` does), drawn.json, and, in training/, what ``train_judge`` reads.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pandas as pd

from workflow_scripts.compun.drawn.paint import SIZE, paint
from workflow_scripts.compun.drawn.texts import write_caption, write_descriptions, write_examples
from workflow_scripts.compun.drawn.world import (
    NOUNS,
    TRAININGS,
    Compound,
    Scene,
    draw_compounds,
    draw_scene,
    draw_thing,
)
from workflow_scripts.core import cli, seeds, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, empty_table, write_json, write_table, write_text
from workflow_scripts.core.progress import track
from workflow_scripts.dataset.sketch.draw import png
from workflow_scripts.dataset.sketch.world import Dice

# Captions of a training picture.
CAPTIONS = 6
# Pictures of single things that are watched while a CLIP trains, and not trained on.
WATCHED = 200
# Of a thing that stands beside another.
PLAIN_SHARE = 0.7


def distractors(compound: Compound, dice: Dice) -> list[Scene]:
    """Each of the two nouns by itself, as it is: plain, in a color that the compound's picture has not."""
    scenes = []
    for noun in (compound.first, compound.second):
        thing = draw_thing(noun, dice, plain=1)
        while thing.color in {shown.color for shown in compound.things}:
            thing = draw_thing(noun, dice, plain=1)
        scenes.append(draw_scene((thing,), dice))
    return scenes


def training_scenes(
    tested: Sequence[Compound], others: Sequence[Compound], things: int, pairs: int, each: int, seed: int
) -> Iterator[tuple[Scene, Compound | None, str, Dice]]:
    """What is drawn to train on: the scene, the compound whose picture it is, in which set it is, its dice.

    The set is ``both`` trainings, ``taught`` alone, or ``watched``. things and pairs: pictures of one and of two
    things; each: pictures of a compound.
    """
    apart = {frozenset((one.first, one.second)) for one in tested}
    free = [pair for pair in combinations(NOUNS, 2) if frozenset(pair) not in apart]
    if pairs and not free:
        raise UserError("every two nouns are a tested compound: ask for fewer, or for no pictures of two things")

    def dice_of(*keys: str | int) -> Dice:
        return Dice(seeds.rng(seed, "draw_compounds", *keys))

    for part, number in (("both", things), ("watched", WATCHED)):
        for index in range(number):
            dice = dice_of(part, "thing", index)
            yield draw_scene((draw_thing(NOUNS[index % len(NOUNS)], dice),), dice), None, part, dice
    for index in range(pairs):
        dice = dice_of("pair", index)
        one, other = (draw_thing(noun, dice, PLAIN_SHARE) for noun in dice.pick(free))
        yield draw_scene((one, other), dice), None, "both", dice
    for part, compounds in (("both", others), ("taught", tested)):
        for compound in compounds:
            for index in range(each):
                dice = dice_of(part, compound.name, index)
                yield draw_scene(compound.things, dice), compound, part, dice


def write_training(
    scenes: Sequence[tuple[Scene, Compound | None, str, Dice]], folder: Path, results: Path
) -> dict[str, int]:
    """The pictures, their captions, and a table of splits for each training; returns how many each trains on."""
    ids, parts, captions = [], [], []
    digits = len(str(len(scenes) - 1))
    with atomic_folder(folder / "images") as images:
        for index, (scene, compound, part, dice) in enumerate(track(scenes, len(scenes), "pictures to train on")):
            image_id = f"{index:0{digits}d}"
            ids.append(image_id)
            parts.append(part)
            (images / f"{image_id}.png").write_bytes(png(paint(scene, dice)))
            captions += [(image_id, n, None, write_caption(scene, compound, dice)) for n in range(CAPTIONS)]
    place = (folder / "images").relative_to(results)
    table = empty_table(tables.IMAGES).reindex(range(len(ids)))
    table = table.assign(image_id=ids, path=[f"{place}/{name}.png" for name in ids], width=SIZE, height=SIZE)
    write_table(table.astype({"width": "Int64", "height": "Int64"}), folder / "images.parquet", tables.IMAGES)
    said = pd.DataFrame(captions, columns=["image_id", "caption_id", "class_id", "text"])
    write_table(said.astype({"class_id": "str"}), folder / "captions.parquet", tables.CAPTIONS)
    trained = {}
    for training in TRAININGS:
        split = {"both": "train", "watched": "test_seen"} | ({"taught": "train"} if training == "taught" else {})
        own = pd.DataFrame({"image_id": ids, "split": [split.get(part) for part in parts]}).dropna()
        write_table(own, folder / f"{training}.parquet", tables.SPLIT)
        trained[training] = int((own["split"] == "train").sum())
    return trained


def main(options: argparse.Namespace) -> None:
    compounds = draw_compounds(options.seed, options.tested + options.others)
    tested, others = compounds[: options.tested], compounds[options.tested :]
    captions, descriptions = {}, {}
    with atomic_folder(options.output / "images") as folder:
        for compound in tested:
            dice = Dice(seeds.rng(options.seed, "draw_compounds", "tested", compound.name))
            scenes = [draw_scene(compound.things, dice), *distractors(compound, dice)]
            for ending, scene in zip(("", "_n1", "_n2"), scenes, strict=True):
                (folder / f"{compound.name}{ending}.png").write_bytes(png(paint(scene, dice)))
            captions[compound.name] = write_examples(compound, dice)
            descriptions[compound.name] = write_descriptions(compound)
    listed = pd.DataFrame([(c.name, c.first, c.second, c.kind) for c in tested])
    listed.columns = ["compound", "first", "second", "kind"]
    write_text(listed.to_csv(index=False, lineterminator="\n"), options.output / "list.csv")
    write_json(captions, options.output / "captions.json")
    write_json(descriptions, options.output / "descriptions.json")
    scenes = list(training_scenes(tested, others, options.things, options.pairs, options.each, options.seed))
    trained = write_training(scenes, options.output / "training", options.results)
    summary = {
        "seed": options.seed,
        "tested": len(tested),
        "kinds": {kind: sum(c.kind == kind for c in tested) for kind in tables.NOUNS_SEEN},
        "one_word": sum(" " not in c.name for c in tested),
        "others": len(others),
        "nouns": len(NOUNS),
        "pictures": {"things": options.things, "pairs": options.pairs, "of_a_compound": options.each, **trained},
    }
    write_json(summary, options.output / "drawn.json")
    log.info("%d compounds to test, %d others, %s pictures to train on", len(tested), len(others), trained)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--tested", type=int, required=True, help="compounds that are tested")
    parser.add_argument("--others", type=int, required=True, help="compounds that both trainings have pictures of")
    parser.add_argument("--things", type=int, required=True, help="training pictures of one thing")
    parser.add_argument("--pairs", type=int, required=True, help="training pictures of two things")
    parser.add_argument("--each", type=int, required=True, help="training pictures of a compound")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, required=True, help="the folder that image paths start from")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="below --results")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
