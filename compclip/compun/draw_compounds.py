"""Draw compounds: a list, three images of each, texts about them, and training pictures for small
CLIPs.

A compound's picture shows the thing of one of its nouns, changed (``either``), both things
(``both``), or another thing (``none``): the three kinds of Kumar et al. 2024, section 6. A training
caption has its name or what it shows, never both, so a CLIP that has not seen a compound has not
read what it is; only example captions have both.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont

from compclip.compun.config import Drawn
from compclip.core import seeds
from compclip.core.errors import require
from compclip.core.tables import NOUNS_SEEN
from compclip.dataset.sketch.draw import FINER, RGB
from compclip.dataset.sketch.world import Dice

# Characters of DejaVu Sans, which comes with matplotlib.
THING_SYMBOLS = {
    "star": "★",
    "sun": "☀",
    "cloud": "☁",
    "umbrella": "☂",
    "phone": "☎",
    "heart": "♥",
    "club": "♣",
    "diamond": "♦",
    "king": "♚",
    "tower": "♜",
    "horse": "♞",
    "plane": "✈",
    "flag": "⚑",
    "cross": "✚",
    "hand": "☛",
    "flower": "✿",
    "gear": "⚙",
    "box": "■",
    "tent": "▲",
    "face": "☻",
}
THING_NOUNS = tuple(THING_SYMBOLS)
NOUN_PAIRS = tuple(combinations(THING_NOUNS, 2))
THING_COLORS = ("black", "blue", "brown", "green", "orange", "pink", "purple", "red", "yellow")
NO_PATTERN = "plain"
PATTERNS = {"striped": "stripes", "dotted": "dots", "checked": "checks"}
SIZE = 64
GROUNDS = ((226, 226, 218), (206, 218, 206), (206, 214, 226))
# Patterns are dark on light colors and light on dark ones.
DARK, LIGHT, LIGHT_COLORS = (64, 52, 60), (250, 250, 250), ("yellow", "pink", "orange")
# Captions with the words of prompts, which a tower of words must know.
FRAMES = (
    "{}",
    "{}.",
    "a photo of {}",
    "a photo of {}.",
    "an image of {}",
    "{} in an image",
    "an example of {}",
    "here is {}, which has been drawn",
)
EXAMPLE_TEXTS = 7  # number of captions of a compound
# How often a caption states a color or pattern; names a compound; has a name that occurs only once,
# like rare words in real captions: from these, a tower of words learns that unknown words carry no
# information.
TOLD_RATE, NAMED_RATE, STRANGE_RATE = 0.75, 0.5, 0.02
PICTURE_CAPTIONS = 6  # of a training picture
WATCHED_PICTURES = 60  # pictures of single things for validation
COMPOUND_PICTURES = 8  # training pictures of a compound
PAIR_FRACTION = 1 / 3  # training pictures of two things, for each of a single thing
Texts = dict[str, list[str]]
# The set (``both`` trainings, only ``taught``, or ``watched``: validation), the picture, its
# captions.
TrainingPicture = tuple[str, Image.Image, list[str]]


class Thing(NamedTuple):
    noun: str
    color: str
    pattern: str  # or NO_PATTERN, which no caption mentions


class DrawnCompound(NamedTuple):
    """A compound, named after the nouns ``first`` and ``second``; its picture shows ``things``."""

    name: str
    first: str
    second: str
    kind: str
    things: tuple[Thing, ...]


def draw_thing(noun: str, dice: Dice, plain: float = 0.5) -> Thing:
    """Return a thing of random color, without a pattern with probability ``plain``."""
    return Thing(
        noun,
        dice.pick(THING_COLORS),
        NO_PATTERN if dice.chance(plain) else dice.pick(list(PATTERNS)),
    )


def make_compounds(seed: int, number: int) -> list[DrawnCompound]:
    """Return ``number`` compounds of different pairs of nouns, alternating kinds and spellings
    (open, one word).
    """
    fault = f"{number} compounds of {len(NOUN_PAIRS)} pairs of nouns"
    require(number <= len(NOUN_PAIRS), "compun.drawn", fault, "lower tested")
    dice = Dice(seeds.rng(seed, "draw_compounds", "compounds"))
    chosen = dice.several(NOUN_PAIRS, [1.0] * len(NOUN_PAIRS), number)
    return [
        make_compound(pair, NOUNS_SEEN[at % 3], at // 3 % 2 == 1, dice)
        for at, pair in enumerate(chosen)
    ]


def make_compound(pair: tuple[str, str], kind: str, closed: bool, dice: Dice) -> DrawnCompound:
    first, second = pair if dice.chance(0.5) else pair[::-1]
    name = f"{first}{second}" if closed else f"{first} {second}"
    if kind == "both":
        one = draw_thing(first, dice, plain=1)
        return DrawnCompound(name, first, second, kind, (one, without_colors(second, [one], dice)))
    nouns = pair if kind == "either" else [noun for noun in THING_NOUNS if noun not in pair]
    return DrawnCompound(name, first, second, kind, (draw_thing(dice.pick(nouns), dice, plain=0),))


def without_colors(noun: str, things: Sequence[Thing], dice: Dice) -> Thing:
    """Return a thing without a pattern, of a color that ``things`` do not have."""
    taken = {thing.color for thing in things}
    return Thing(
        noun, dice.pick([color for color in THING_COLORS if color not in taken]), NO_PATTERN
    )


@cache
def _glyph(noun: str) -> Image.Image:
    font = ImageFont.truetype(
        f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", SIZE * FINER
    )
    left, top, right, bottom = map(int, font.getbbox(THING_SYMBOLS[noun]))
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).text((-left, -top), THING_SYMBOLS[noun], fill=255, font=font)
    return mask


def paint_things(things: Sequence[Thing], dice: Dice) -> Image.Image:
    """Return an RGB picture of one thing, or of two side by side, in random order, pose and
    size.
    """
    fine = SIZE * FINER
    picture = Image.new("RGB", (fine, fine), dice.pick(GROUNDS))
    order = things[::-1] if dice.chance(0.5) else things
    for place, thing in enumerate(order):
        side = int(fine / len(things) * dice.between(0.66, 0.84))
        glyph = _glyph(thing.noun)
        scale = side / max(glyph.size)
        mask = glyph.resize((int(glyph.width * scale), int(glyph.height * scale)))
        mask = mask.rotate(dice.between(-14, 14), Image.Resampling.BILINEAR, expand=True)
        x = (place + 0.5) * fine / len(things) + fine * dice.between(-0.05, 0.05) / len(things)
        y = fine * (0.5 + dice.between(-0.1, 0.1))
        corner = (int(x - mask.width / 2), int(y - mask.height / 2))
        picture.paste(_fill_thing(thing, mask.size, side / 2, dice), corner, mask)
    return picture.reduce(FINER)


def _fill_thing(thing: Thing, size: tuple[int, int], scale: float, dice: Dice) -> Image.Image:
    """Return an image in the thing's color and pattern, whose width is set by ``scale``, half the
    thing's size.
    """
    turn = math.radians(dice.between(0, 180))
    down, across = np.mgrid[0 : size[1], 0 : size[0]] / scale
    u = across * math.cos(turn) + down * math.sin(turn)
    v = down * math.cos(turn) - across * math.sin(turn)
    second = {
        NO_PATTERN: np.zeros_like(u, bool),
        "striped": u // 0.21 % 2 == 0,
        "checked": (u // 0.3 + v // 0.3) % 2 == 0,
        "dotted": np.hypot(u % 0.52 - 0.26, v % 0.52 - 0.26) < 0.17,
    }[thing.pattern]
    other = DARK if thing.color in LIGHT_COLORS else LIGHT
    return Image.fromarray(np.where(second[..., None], other, RGB[thing.color]).astype(np.uint8))


def with_article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def say_things(things: Sequence[Thing], dice: Dice) -> str:
    """Return a phrase such as ``a red box beside a tent with green dots``, in random order."""
    phrases = []
    for thing in things:
        color = thing.color if dice.chance(TOLD_RATE) else ""
        pattern = thing.pattern if thing.pattern != NO_PATTERN and dice.chance(TOLD_RATE) else ""
        form = dice.unit()
        if form < 0.1:
            words = [color, pattern, "shape of", with_article(thing.noun)]
        elif form < 0.4 and pattern:
            words = [thing.noun, "with", color, PATTERNS[pattern]]
        elif form < 0.2 and color:
            words = [thing.noun, "of", color, "color"]
        else:
            words = [color, pattern, thing.noun]
        phrases.append(with_article(" ".join(filter(None, words))))
    return dice.pick((" and ", " beside ", " next to ")).join(
        phrases[::-1] if dice.chance(0.5) else phrases
    )


def caption_things(things: Sequence[Thing], compound: DrawnCompound | None, dice: Dice) -> str:
    """Return a caption of a training picture, which may be of ``compound``."""
    words = say_things(things, dice)
    if dice.chance(STRANGE_RATE):
        words = with_article(
            "".join(dice.pick("bdfgklmnprstvz") + dice.pick("aeiou") for _ in range(4))
        )
    elif compound and dice.chance(NAMED_RATE):
        words = with_article(compound.name)
    return dice.pick(FRAMES).format(words)


def write_examples(compound: DrawnCompound, dice: Dice) -> list[str]:
    """Return EXAMPLE_TEXTS distinct captions that name the compound and what its picture shows."""
    texts: dict[str, None] = {}
    while len(texts) < EXAMPLE_TEXTS:
        form = dice.pick(("{name}, {shown}", "{shown}, {name}"))
        text = form.format(
            name=with_article(compound.name), shown=say_things(compound.things, dice)
        )
        texts[f"{text[0].upper()}{text[1:]}."] = None
    return list(texts)


def write_descriptions(compound: DrawnCompound) -> list[str]:
    """Return phrases that describe the compound without its name: ``a shape of a tent``."""
    texts = []
    for noun, color, pattern in compound.things:
        texts += [f"a shape of {with_article(noun)}", f"{color} {PATTERNS.get(pattern, 'color')}"]
    return texts


def training_pictures(
    tested: Sequence[DrawnCompound], others: Sequence[DrawnCompound], things: int, seed: int
) -> Iterator[TrainingPicture]:
    """Yield the training pictures, each from its own random stream."""
    apart = {frozenset((compound.first, compound.second)) for compound in tested}
    free = [pair for pair in NOUN_PAIRS if frozenset(pair) not in apart]

    def dice_of(*keys: str | int) -> Dice:
        return Dice(seeds.rng(seed, "draw_compounds", *keys))

    def picture(
        part: str, dice: Dice, shown: Sequence[Thing], named: DrawnCompound | None = None
    ) -> TrainingPicture:
        image = paint_things(shown, dice)
        return part, image, [caption_things(shown, named, dice) for _ in range(PICTURE_CAPTIONS)]

    for part, number in (("both", things), ("watched", WATCHED_PICTURES)):
        for index in range(number):
            dice = dice_of(part, "thing", index)
            yield picture(part, dice, [draw_thing(THING_NOUNS[index % len(THING_NOUNS)], dice)])
    for index in range(int(things * PAIR_FRACTION)):
        dice = dice_of("pair", index)
        yield picture("both", dice, [draw_thing(noun, dice, plain=0.7) for noun in dice.pick(free)])
    for part, compounds in (("both", others), ("taught", tested)):
        for compound in compounds:
            for index in range(COMPOUND_PICTURES):
                yield picture(part, dice_of(part, compound.name, index), compound.things, compound)


def draw_compounds(
    settings: Drawn, seed: int = 0
) -> tuple[pd.DataFrame, dict[str, Image.Image], Texts, Texts, Iterator[TrainingPicture]]:
    """Draw compounds to test, and training pictures for small CLIPs.

    A compound's picture shows one of its two things changed, both, or neither. Only the training
    set ``taught`` has pictures of the tested compounds; both sets have single things, two things
    side by side, and other compounds of the same kinds.

    Returns:
        The list of compounds; their images, by the names that ``load_compounds`` expects; example
        captions and descriptions of each; and the training pictures.
    """
    compounds = make_compounds(seed, settings.tested + settings.tested // 2)
    tested, others = compounds[: settings.tested], compounds[settings.tested :]
    images, captions, descriptions = {}, {}, {}
    for compound in tested:
        dice = Dice(seeds.rng(seed, "draw_compounds", "tested", compound.name))
        nouns = {"_n1": compound.first, "_n2": compound.second}
        shown = {
            ending: (without_colors(noun, compound.things, dice),) for ending, noun in nouns.items()
        }
        for ending, things in ({"": compound.things} | shown).items():
            images[f"{compound.name}{ending}"] = paint_things(things, dice)
        captions[compound.name] = write_examples(compound, dice)
        descriptions[compound.name] = write_descriptions(compound)
    listed = pd.DataFrame(tested)[["name", "first", "second", "kind"]].rename(
        columns={"name": "compound"}
    )
    return (
        listed,
        images,
        captions,
        descriptions,
        training_pictures(tested, others, settings.things, seed),
    )
