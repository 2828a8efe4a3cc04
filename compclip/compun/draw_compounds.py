"""Draw compounds: a list, three images of each, texts about them, and pictures to train small CLIPs on."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd
from PIL import Image

from compclip.compun.config import Drawn
from compclip.compun.drawn import (
    NOUNS,
    PAIRS,
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
from compclip.core import seeds
from compclip.core.errors import require
from compclip.dataset.sketch.world import Dice

CAPTIONS = 6  # of a training picture
WATCHED = 60  # pictures of single things that are watched while a CLIP trains, and not trained on
EACH = 8  # training pictures of a compound
PAIR_FRACTION = 1 / 3  # training pictures of two things, for each of a single thing
Texts = dict[str, list[str]]  # by compound


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


def paint_training(pictures: Iterable[Picture]) -> Iterator[tuple[Image.Image, list[str]]]:
    """Yield each training picture with its captions."""
    for things, compound, _, dice in pictures:
        yield paint(things, dice), [write_caption(things, compound, dice) for _ in range(CAPTIONS)]


def training_split(parts: Sequence[str], training: str) -> list[str | None]:
    """Return the split of each training picture by its ``part``; None if this training does not have it."""
    split = {"both": "train", "watched": "test_seen"} | ({"taught": "train"} if training == "taught" else {})
    return [split.get(part) for part in parts]


def draw_compounds(
    drawn: Drawn, seed: int = 0
) -> tuple[pd.DataFrame, dict[str, Image.Image], Texts, Texts, list[Picture]]:
    """Draw compounds to test, and what small CLIPs are trained on.

    A compound's picture shows one of its two things changed, both, or neither. Of the two training sets only ``taught``
    has pictures of the tested compounds; both have single things, two things side by side, and other compounds of the
    same kinds.

    Returns:
        The list of compounds; their images, by the names that ``load_compounds`` expects; example captions and
        descriptions of each; and what the training pictures show.
    """
    compounds = make_compounds(seed, drawn.tested + drawn.tested // 2)
    tested, others = compounds[: drawn.tested], compounds[drawn.tested :]
    images, captions, descriptions = dict[str, Image.Image](), Texts(), Texts()
    for compound in tested:
        dice = Dice(seeds.rng(seed, "draw_compounds", "tested", compound.name))
        nouns = {"_n1": compound.first, "_n2": compound.second}
        shown = {ending: (without_colors(noun, compound.things, dice),) for ending, noun in nouns.items()}
        for ending, things in ({"": compound.things} | shown).items():
            images[f"{compound.name}{ending}"] = paint(things, dice)
        captions[compound.name] = write_examples(compound, dice)
        descriptions[compound.name] = write_descriptions(compound)
    listed = pd.DataFrame(tested)[["name", "first", "second", "kind"]].rename(columns={"name": "compound"})
    return listed, images, captions, descriptions, list(training_pictures(tested, others, drawn.things, seed))
