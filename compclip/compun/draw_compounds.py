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
SIZE = 64  # pixels of a square picture's edge
# Colors of the background.
GROUNDS = ((226, 226, 218), (206, 218, 206), (206, 214, 226))
# Patterns are dark on light colors and light on dark ones.
DARK = (64, 52, 60)
LIGHT = (250, 250, 250)
LIGHT_COLORS = ("yellow", "pink", "orange")
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
TOLD_RATE = 0.75  # how often a caption states a color or pattern
NAMED_RATE = 0.5  # how often a caption of a compound names it
# How often a caption has a name that occurs only once, like rare words in real captions: from
# these, a tower of words learns that unknown words carry no information.
STRANGE_RATE = 0.02
PICTURE_CAPTIONS = 6  # of a training picture
VALIDATION_PICTURES = 60  # pictures of single things for validation
COMPOUND_PICTURES = 8  # training pictures of a compound
PAIR_FRACTION = 1 / 3  # training pictures of two things, for each of a single thing
Texts = dict[str, list[str]]


class Thing(NamedTuple):
    noun: str  # of THING_NOUNS
    color: str  # of THING_COLORS
    pattern: str  # of PATTERNS, or NO_PATTERN, which no caption mentions


class DrawnCompound(NamedTuple):
    """A compound and its picture."""

    name: str  # from the nouns ``first`` and ``second``
    first: str
    second: str
    kind: str  # of NOUNS_SEEN: which of its nouns the picture shows
    things: tuple[Thing, ...]  # one, or two of kind `both`


class TrainingPicture(NamedTuple):
    subset: str  # ``both`` trainings, only ``taught``, or ``validation``
    image: Image.Image
    captions: list[str]


class DrawnData(NamedTuple):
    """What the stage reads from users otherwise, and pictures to train on."""

    listed: pd.DataFrame  # the tested compounds, as a list for ``load_compounds``
    images: dict[str, Image.Image]  # by the names that ``load_compounds`` expects
    captions: Texts  # examples, of each tested compound
    descriptions: Texts
    pictures: Iterator[TrainingPicture]  # drawn one by one, because all take much memory


def _dice(seed: int, *keys: str | int) -> Dice:
    return Dice(seeds.rng(seed, "draw_compounds", *keys))


def draw_thing(noun: str, dice: Dice, plain: float = 0.5) -> Thing:
    """Return a thing of random color, without a pattern with probability ``plain``."""
    color = dice.pick(THING_COLORS)
    pattern = NO_PATTERN if dice.chance(plain) else dice.pick(list(PATTERNS))
    return Thing(noun, color, pattern)


def make_compounds(seed: int, number: int) -> list[DrawnCompound]:
    """Return ``number`` compounds of different pairs of nouns, alternating kinds and spellings
    (open, one word).
    """
    fault = f"{number} compounds of {len(NOUN_PAIRS)} pairs of nouns"
    require(number <= len(NOUN_PAIRS), "compun.drawn", fault, "lower tested")
    dice = _dice(seed, "compounds")
    pairs = dice.several(NOUN_PAIRS, [1.0] * len(NOUN_PAIRS), number)
    compounds = []
    for index, pair in enumerate(pairs):
        # All three kinds have one spelling before it alternates, so both occur with each kind.
        kind = NOUNS_SEEN[index % 3]
        is_one_word = index // 3 % 2 == 1
        compounds.append(make_compound(pair, kind, is_one_word, dice))
    return compounds


def make_compound(pair: tuple[str, str], kind: str, is_one_word: bool, dice: Dice) -> DrawnCompound:
    first, second = pair if dice.chance(0.5) else pair[::-1]
    name = f"{first}{second}" if is_one_word else f"{first} {second}"
    if kind == "both":
        thing = draw_thing(first, dice, plain=1)
        things: tuple[Thing, ...] = (thing, draw_other_color(second, [thing], dice))
    else:
        nouns = list(pair)
        if kind == "none":
            nouns = [noun for noun in THING_NOUNS if noun not in pair]
        # Always with a pattern, because the thing is changed.
        things = (draw_thing(dice.pick(nouns), dice, plain=0),)
    return DrawnCompound(name, first, second, kind, things)


def draw_other_color(noun: str, things: Sequence[Thing], dice: Dice) -> Thing:
    """Return a thing without a pattern, of a color that ``things`` do not have."""
    used_colors = {thing.color for thing in things}
    colors = [color for color in THING_COLORS if color not in used_colors]
    return Thing(noun, dice.pick(colors), NO_PATTERN)


@cache
def _glyph(noun: str) -> Image.Image:
    """Return the mask of a noun's symbol, cropped to its outline."""
    symbol = THING_SYMBOLS[noun]
    file = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
    font = ImageFont.truetype(file, SIZE * FINER)
    left, top, right, bottom = map(int, font.getbbox(symbol))
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).text((-left, -top), symbol, fill=255, font=font)
    return mask


def paint_things(things: Sequence[Thing], dice: Dice) -> Image.Image:
    """Return an RGB picture of one thing, or of two side by side, in random order, pose and
    size.
    """
    # Drawn larger and reduced at the end, which smooths the outlines.
    picture_size = SIZE * FINER
    count = len(things)
    picture = Image.new("RGB", (picture_size, picture_size), dice.pick(GROUNDS))
    order = things[::-1] if dice.chance(0.5) else things
    for column, thing in enumerate(order):
        thing_size = int(picture_size / count * dice.between(0.66, 0.84))
        glyph = _glyph(thing.noun)
        scale = thing_size / max(glyph.size)
        mask = glyph.resize((int(glyph.width * scale), int(glyph.height * scale)))
        mask = mask.rotate(dice.between(-14, 14), Image.Resampling.BILINEAR, expand=True)
        column_center = (column + 0.5) * picture_size / count
        x = column_center + picture_size * dice.between(-0.05, 0.05) / count
        y = picture_size * (0.5 + dice.between(-0.1, 0.1))
        corner = (int(x - mask.width / 2), int(y - mask.height / 2))
        filled = _fill_thing(thing, mask.size, thing_size / 2, dice)
        picture.paste(filled, corner, mask)
    return picture.reduce(FINER)


def _fill_thing(thing: Thing, size: tuple[int, int], scale: float, dice: Dice) -> Image.Image:
    """Return an image in the thing's color and pattern, whose width is set by ``scale``, half the
    thing's size.
    """
    width, height = size
    # In units of half the thing's size, so large and small things have as many marks.
    y, x = np.mgrid[0:height, 0:width] / scale
    # Coordinates along and across the pattern, which is turned at random.
    angle = math.radians(dice.between(0, 180))
    u = x * math.cos(angle) + y * math.sin(angle)
    v = y * math.cos(angle) - x * math.sin(angle)
    is_mark = _is_mark(thing.pattern, u, v)
    mark_color = DARK if thing.color in LIGHT_COLORS else LIGHT
    pixels = np.where(is_mark[..., None], mark_color, RGB[thing.color])
    return Image.fromarray(pixels.astype(np.uint8))


def _is_mark(pattern: str, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the pixels of a pattern's second color."""
    if pattern == "striped":  # as wide as the gaps
        return u // 0.21 % 2 == 0
    if pattern == "checked":
        return (u // 0.3 + v // 0.3) % 2 == 0
    if pattern == "dotted":  # the centers are 0.52 apart
        return np.hypot(u % 0.52 - 0.26, v % 0.52 - 0.26) < 0.17
    return np.zeros_like(u, bool)


def with_article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def say_things(things: Sequence[Thing], dice: Dice) -> str:
    """Return a phrase such as ``a red box beside a tent with green dots``, in random order."""
    phrases = []
    for thing in things:
        color = thing.color if dice.chance(TOLD_RATE) else ""
        pattern = ""
        if thing.pattern != NO_PATTERN and dice.chance(TOLD_RATE):
            pattern = thing.pattern
        form = dice.unit()
        if form < 0.1:  # `a red striped shape of a tent`
            words = [color, pattern, "shape of", with_article(thing.noun)]
        elif form < 0.4 and pattern:  # `a tent with red stripes`
            words = [thing.noun, "with", color, PATTERNS[pattern]]
        elif form < 0.2 and color:  # `a tent of red color`
            words = [thing.noun, "of", color, "color"]
        else:  # `a red striped tent`
            words = [color, pattern, thing.noun]
        phrases.append(with_article(" ".join(filter(None, words))))
    joint = dice.pick((" and ", " beside ", " next to "))
    if dice.chance(0.5):
        phrases.reverse()
    return joint.join(phrases)


def caption_things(things: Sequence[Thing], compound: DrawnCompound | None, dice: Dice) -> str:
    """Return a caption of a training picture, which may be of ``compound``."""
    words = say_things(things, dice)
    if dice.chance(STRANGE_RATE):
        syllables = [dice.pick("bdfgklmnprstvz") + dice.pick("aeiou") for _ in range(4)]
        words = with_article("".join(syllables))
    elif compound and dice.chance(NAMED_RATE):
        words = with_article(compound.name)
    return dice.pick(FRAMES).format(words)


def write_examples(compound: DrawnCompound, dice: Dice) -> list[str]:
    """Return EXAMPLE_TEXTS distinct captions that name the compound and what its picture shows."""
    name = with_article(compound.name)
    texts: dict[str, None] = {}  # an ordered set
    while len(texts) < EXAMPLE_TEXTS:
        form = dice.pick(("{name}, {shown}", "{shown}, {name}"))
        text = form.format(name=name, shown=say_things(compound.things, dice))
        sentence = f"{text[0].upper()}{text[1:]}."
        texts[sentence] = None
    return list(texts)


def write_descriptions(compound: DrawnCompound) -> list[str]:
    """Return phrases that describe the compound without its name: ``a shape of a tent``."""
    texts = []
    for noun, color, pattern in compound.things:
        texts += [f"a shape of {with_article(noun)}", f"{color} {PATTERNS.get(pattern, 'color')}"]
    return texts


def draw_training_picture(
    subset: str, things: Sequence[Thing], compound: DrawnCompound | None, dice: Dice
) -> TrainingPicture:
    """Draw things, which may be those of ``compound``, and caption them."""
    image = paint_things(things, dice)
    captions = [caption_things(things, compound, dice) for _ in range(PICTURE_CAPTIONS)]
    return TrainingPicture(subset, image, captions)


def training_pictures(
    tested: Sequence[DrawnCompound], untested: Sequence[DrawnCompound], things: int, seed: int
) -> Iterator[TrainingPicture]:
    """Yield the training pictures, each from its own random stream."""
    # The names of the random streams decide the pictures: keep them.
    for subset, stream, number in (
        ("both", "both", things),
        ("validation", "watched", VALIDATION_PICTURES),
    ):
        for index in range(number):
            dice = _dice(seed, stream, "thing", index)
            thing = draw_thing(THING_NOUNS[index % len(THING_NOUNS)], dice)
            yield draw_training_picture(subset, [thing], None, dice)
    # The two things of a tested compound side by side would be its picture if its kind is ``both``.
    tested_pairs = {frozenset((compound.first, compound.second)) for compound in tested}
    free_pairs = [pair for pair in NOUN_PAIRS if frozenset(pair) not in tested_pairs]
    for index in range(int(things * PAIR_FRACTION)):
        dice = _dice(seed, "pair", index)
        pair = [draw_thing(noun, dice, plain=0.7) for noun in dice.pick(free_pairs)]
        yield draw_training_picture("both", pair, None, dice)
    for subset, compounds in (("both", untested), ("taught", tested)):
        for compound in compounds:
            for index in range(COMPOUND_PICTURES):
                dice = _dice(seed, subset, compound.name, index)
                yield draw_training_picture(subset, compound.things, compound, dice)


def draw_compounds(settings: Drawn, seed: int = 0) -> DrawnData:
    """Draw compounds to test, and training pictures for small CLIPs.

    A compound's picture shows one of its two things changed, both, or neither. Only the training
    set ``taught`` has pictures of the tested compounds; both sets have single things, two things
    side by side, and other compounds of the same kinds.
    """
    compounds = make_compounds(seed, settings.tested + settings.tested // 2)
    tested = compounds[: settings.tested]
    untested = compounds[settings.tested :]  # on which both CLIPs train
    images = {}
    captions = {}
    descriptions = {}
    for compound in tested:
        dice = _dice(seed, "tested", compound.name)
        first = draw_other_color(compound.first, compound.things, dice)
        second = draw_other_color(compound.second, compound.things, dice)
        images[compound.name] = paint_things(compound.things, dice)
        images[f"{compound.name}_n1"] = paint_things([first], dice)
        images[f"{compound.name}_n2"] = paint_things([second], dice)
        captions[compound.name] = write_examples(compound, dice)
        descriptions[compound.name] = write_descriptions(compound)
    columns = ["name", "first", "second", "kind"]
    listed = pd.DataFrame(tested)[columns].rename(columns={"name": "compound"})
    pictures = training_pictures(tested, untested, settings.things, seed)
    return DrawnData(listed, images, captions, descriptions, pictures)
