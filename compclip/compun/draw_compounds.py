"""Draw compounds: a list, three images of each, texts about them, and pictures to train small CLIPs on."""

from collections.abc import Iterator, Sequence

import pandas as pd
from PIL import Image

from compclip.compun import drawn
from compclip.compun.config import Drawn
from compclip.compun.drawn import NOUNS, PAIRS, Compound, Thing
from compclip.core import seeds
from compclip.core.errors import require
from compclip.dataset.sketch.world import Dice

CAPTIONS = 6  # of a training picture
WATCHED = 60  # pictures of single things that are watched while a CLIP trains, and not trained on
EACH = 8  # training pictures of a compound
PAIR_FRACTION = 1 / 3  # training pictures of two things, for each of a single thing
Texts = dict[str, list[str]]
# Of ``both`` trainings, of ``taught`` alone, or ``watched``; the picture; its captions.
TrainingPicture = tuple[str, Image.Image, list[str]]


def training_pictures(
    tested: Sequence[Compound], others: Sequence[Compound], things: int, seed: int
) -> Iterator[TrainingPicture]:
    """Yield the training pictures, each with random numbers of its own."""
    apart = {frozenset((compound.first, compound.second)) for compound in tested}
    free = [pair for pair in PAIRS if frozenset(pair) not in apart]
    require(free, "compun.drawn", "any two nouns are a tested compound", "lower tested")

    def dice_of(*keys: str | int) -> Dice:
        return Dice(seeds.rng(seed, "draw_compounds", *keys))

    def picture(part: str, dice: Dice, shown: Sequence[Thing], compound: Compound | None = None) -> TrainingPicture:
        return part, drawn.paint(shown, dice), [drawn.write_caption(shown, compound, dice) for _ in range(CAPTIONS)]

    for part, number in (("both", things), ("watched", WATCHED)):
        for index in range(number):
            dice = dice_of(part, "thing", index)
            yield picture(part, dice, [drawn.draw_thing(NOUNS[index % len(NOUNS)], dice)])
    for index in range(int(things * PAIR_FRACTION)):
        dice = dice_of("pair", index)
        yield picture("both", dice, [drawn.draw_thing(noun, dice, plain=0.7) for noun in dice.pick(free)])
    for part, compounds in (("both", others), ("taught", tested)):
        for compound in compounds:
            for index in range(EACH):
                yield picture(part, dice_of(part, compound.name, index), compound.things, compound)


def draw_compounds(
    settings: Drawn, seed: int = 0
) -> tuple[pd.DataFrame, dict[str, Image.Image], Texts, Texts, Iterator[TrainingPicture]]:
    """Draw compounds to test, and what small CLIPs are trained on.

    A compound's picture shows one of its two things changed, both, or neither. Of the two training sets only ``taught``
    has pictures of the tested compounds; both have single things, two things side by side, and other compounds of the
    same kinds.

    Returns:
        The list of compounds; their images, by the names that ``load_compounds`` expects; example captions and
        descriptions of each; and the training pictures.
    """
    compounds = drawn.make_compounds(seed, settings.tested + settings.tested // 2)
    tested, others = compounds[: settings.tested], compounds[settings.tested :]
    images, captions, descriptions = {}, {}, {}
    for compound in tested:
        dice = Dice(seeds.rng(seed, "draw_compounds", "tested", compound.name))
        nouns = {"_n1": compound.first, "_n2": compound.second}
        shown = {ending: (drawn.without_colors(noun, compound.things, dice),) for ending, noun in nouns.items()}
        for ending, things in ({"": compound.things} | shown).items():
            images[f"{compound.name}{ending}"] = drawn.paint(things, dice)
        captions[compound.name] = drawn.write_examples(compound, dice)
        descriptions[compound.name] = drawn.write_descriptions(compound)
    listed = pd.DataFrame(tested)[["name", "first", "second", "kind"]].rename(columns={"name": "compound"})
    return listed, images, captions, descriptions, training_pictures(tested, others, settings.things, seed)
