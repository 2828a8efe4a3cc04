"""Draw compounds: a list, three images of each, texts about them, and pictures to train small CLIPs on."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from workflow_scripts.compun.config import TRAININGS, Drawn
from workflow_scripts.compun.drawn.paint import SIZE, paint
from workflow_scripts.compun.drawn.texts import write_caption, write_descriptions, write_examples
from workflow_scripts.compun.drawn.world import NOUNS, Compound, Scene, draw_compounds, draw_scene, draw_thing
from workflow_scripts.compun.steps import DrawCompounds
from workflow_scripts.core import cli, seeds, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, empty_table, write_json, write_table, write_text
from workflow_scripts.core.progress import track
from workflow_scripts.dataset.sketch.draw import png
from workflow_scripts.dataset.sketch.world import Dice

CAPTIONS = 6  # of a training picture
WATCHED = 200  # pictures of single things that are watched while a CLIP trains, and not trained on
PLAIN_FRACTION = 0.7  # of things that stand beside another


class Picture(NamedTuple):
    """What a training picture shows, of which compound; ``part``: of ``both`` trainings, ``taught``, or ``watched``."""

    scene: Scene
    compound: Compound | None
    part: str
    dice: Dice


def distractors(compound: Compound, dice: Dice) -> list[Scene]:
    """Return scenes of each of the two nouns by itself: plain, in a color that the compound's picture lacks."""
    scenes = []
    for noun in (compound.first, compound.second):
        thing = draw_thing(noun, dice, plain=1)
        while thing.color in {shown.color for shown in compound.things}:
            thing = draw_thing(noun, dice, plain=1)
        scenes.append(draw_scene((thing,), dice))
    return scenes


def training_pictures(
    tested: Sequence[Compound], others: Sequence[Compound], drawn: Drawn, seed: int
) -> Iterator[Picture]:
    """Yield what the training pictures show, each with random numbers of its own."""
    apart = {frozenset((one.first, one.second)) for one in tested}
    free = [pair for pair in combinations(NOUNS, 2) if frozenset(pair) not in apart]
    if drawn.pairs and not free:
        raise UserError("compun.drawn: any two nouns are a tested compound; lower tested, or set pairs to 0")

    def dice_of(*keys: str | int) -> Dice:
        return Dice(seeds.rng(seed, "draw_compounds", *keys))

    for part, number in (("both", drawn.things), ("watched", WATCHED)):
        for index in range(number):
            dice = dice_of(part, "thing", index)
            yield Picture(draw_scene((draw_thing(NOUNS[index % len(NOUNS)], dice),), dice), None, part, dice)
    for index in range(drawn.pairs):
        dice = dice_of("pair", index)
        one, other = (draw_thing(noun, dice, PLAIN_FRACTION) for noun in dice.pick(free))
        yield Picture(draw_scene((one, other), dice), None, "both", dice)
    for part, compounds in (("both", others), ("taught", tested)):
        for compound in compounds:
            for index in range(drawn.each):
                dice = dice_of(part, compound.name, index)
                yield Picture(draw_scene(compound.things, dice), compound, part, dice)


def write_training(pictures: Sequence[Picture], folder: Path, results: Path) -> dict[str, int]:
    """Write the pictures, their captions, and a table of splits for each training; return its number of images."""
    captions = []
    digits = len(str(len(pictures) - 1))
    ids = [f"{index:0{digits}d}" for index in range(len(pictures))]
    with atomic_folder(folder / "images") as images:
        for image_id, picture in zip(ids, track(pictures, len(pictures), "training pictures"), strict=True):
            scene, compound, _, dice = picture
            (images / f"{image_id}.png").write_bytes(png(paint(scene, dice)))
            captions += [(image_id, n, None, write_caption(scene, compound, dice)) for n in range(CAPTIONS)]
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
    drawn, folder = step.drawn, step.folder
    compounds = draw_compounds(step.seed, drawn.tested + drawn.others)
    tested, others = compounds[: drawn.tested], compounds[drawn.tested :]
    captions, descriptions = {}, {}
    with atomic_folder(folder / "images") as images:
        for compound in tested:
            dice = Dice(seeds.rng(step.seed, "draw_compounds", "tested", compound.name))
            scenes = [draw_scene(compound.things, dice), *distractors(compound, dice)]
            for ending, scene in zip(("", "_n1", "_n2"), scenes, strict=True):
                (images / f"{compound.name}{ending}.png").write_bytes(png(paint(scene, dice)))
            captions[compound.name] = write_examples(compound, dice)
            descriptions[compound.name] = write_descriptions(compound)
    columns = ["compound", "first", "second", "kind"]
    listed = pd.DataFrame([(c.name, c.first, c.second, c.kind) for c in tested], columns=columns)
    write_text(listed.to_csv(index=False, lineterminator="\n"), folder / "list.csv")
    write_json(captions, folder / "captions.json")
    write_json(descriptions, folder / "descriptions.json")
    pictures = list(training_pictures(tested, others, drawn, step.seed))
    trained = write_training(pictures, folder / "training", step.results)
    summary = {
        "seed": step.seed,
        "tested": len(tested),
        "kinds": {kind: sum(c.kind == kind for c in tested) for kind in tables.NOUNS_SEEN},
        "one_word": sum(" " not in c.name for c in tested),
        "others": len(others),
        "nouns": len(NOUNS),
        "pictures": {"things": drawn.things, "pairs": drawn.pairs, "of_a_compound": drawn.each, **trained},
    }
    write_json(summary, folder / "drawn.json")
    log.info("%d compounds to test, %d others, %s training pictures", len(tested), len(others), trained)


if __name__ == "__main__":
    cli.run(main)
