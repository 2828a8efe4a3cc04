"""Drawn compounds: symbols in colors and patterns, what compounds of their names show, and captions that are true.

A compound's picture shows the thing of one of its nouns, changed (``either``), both things (``both``), or another thing
(``none``): the three kinds of Kumar et al. 2024, section 6. A training captions it by its name or by what it shows,
never by both, so that a CLIP that has not seen a compound has not read what it is; only example captions join the two.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from compclip.core import seeds
from compclip.core.errors import require
from compclip.core.tables import NOUNS_SEEN
from compclip.dataset.sketch.draw import FINER, RGB
from compclip.dataset.sketch.world import Dice

# Characters of DejaVu Sans, which comes with matplotlib.
SYMBOLS = {
    "star": "★", "sun": "☀", "cloud": "☁", "umbrella": "☂", "phone": "☎", "heart": "♥", "club": "♣", "diamond": "♦",
    "king": "♚", "tower": "♜", "horse": "♞", "plane": "✈", "flag": "⚑", "cross": "✚", "hand": "☛", "flower": "✿",
    "gear": "⚙", "box": "■", "tent": "▲", "face": "☻",
}  # fmt: skip
NOUNS = tuple(SYMBOLS)
PAIRS = tuple(combinations(NOUNS, 2))
COLORS = ("black", "blue", "brown", "green", "orange", "pink", "purple", "red", "yellow")
PLAIN = "plain"
PATTERNS = {"striped": "stripes", "dotted": "dots", "checked": "checks"}
SIZE = 64
GROUNDS = ((226, 226, 218), (206, 218, 206), (206, 214, 226))
# Patterns are dark on light colors and light on dark ones.
DARK, LIGHT, LIGHT_COLORS = (64, 52, 60), (250, 250, 250), ("yellow", "pink", "orange")
# These hold the words of prompts, which a tower of words must know.
FRAMES = (
    "{}", "{}.", "a photo of {}", "a photo of {}.", "an image of {}", "{} in an image", "an example of {}",
    "here is {}, which has been drawn",
)  # fmt: skip
EXAMPLES = 7  # captions of a compound
# How often a caption states a color or pattern; names a compound; has a name that occurs only once, as rare words in
# real captions: from these a tower of words learns that an unknown word carries no information.
TOLD, NAMED, STRANGE = 0.75, 0.5, 0.02


class Thing(NamedTuple):
    noun: str
    color: str
    pattern: str  # or PLAIN, which no caption mentions


class Compound(NamedTuple):
    """A compound; its name is made of the nouns ``first`` and ``second``, and its picture shows ``things``."""

    name: str
    first: str
    second: str
    kind: str
    things: tuple[Thing, ...]


def draw_thing(noun: str, dice: Dice, plain: float = 0.5) -> Thing:
    """Return a thing of random color, plain with the probability ``plain``."""
    return Thing(noun, dice.pick(COLORS), PLAIN if dice.chance(plain) else dice.pick(list(PATTERNS)))


def make_compounds(seed: int, number: int) -> list[Compound]:
    """Return ``number`` compounds of different pairs of nouns: alternately of each kind, and apart or as one word."""
    require(number <= len(PAIRS), "compun.drawn", f"{number} compounds of {len(PAIRS)} pairs of nouns", "lower tested")
    dice = Dice(seeds.rng(seed, "draw_compounds", "compounds"))
    chosen = dice.several(PAIRS, [1.0] * len(PAIRS), number)
    return [_compound(pair, NOUNS_SEEN[at % 3], at // 3 % 2 == 1, dice) for at, pair in enumerate(chosen)]


def _compound(pair: tuple[str, str], kind: str, closed: bool, dice: Dice) -> Compound:
    first, second = pair if dice.chance(0.5) else pair[::-1]
    name = f"{first}{second}" if closed else f"{first} {second}"
    if kind == "both":
        one = draw_thing(first, dice, plain=1)
        return Compound(name, first, second, kind, (one, without_colors(second, [one], dice)))
    nouns = pair if kind == "either" else [noun for noun in NOUNS if noun not in pair]
    return Compound(name, first, second, kind, (draw_thing(dice.pick(nouns), dice, plain=0),))


def without_colors(noun: str, things: Sequence[Thing], dice: Dice) -> Thing:
    """Return a plain thing of a color that ``things`` do not have."""
    return Thing(noun, dice.pick([color for color in COLORS if color not in {thing.color for thing in things}]), PLAIN)


@cache
def _glyph(noun: str) -> Image.Image:
    font = ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", SIZE * FINER)
    left, top, right, bottom = map(int, font.getbbox(SYMBOLS[noun]))
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).text((-left, -top), SYMBOLS[noun], fill=255, font=font)
    return mask


def paint(things: Sequence[Thing], dice: Dice) -> Image.Image:
    """Return an RGB picture of one thing, or of two side by side, in random order, pose and size."""
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
        picture.paste(_filled(thing, mask.size, side / 2, dice), corner, mask)
    return picture.reduce(FINER)


def _filled(thing: Thing, size: tuple[int, int], scale: float, dice: Dice) -> Image.Image:
    """Return an image in the thing's color and pattern; patterns are as wide as ``scale``, half of the thing."""
    turn = math.radians(dice.between(0, 180))
    down, across = np.mgrid[0 : size[1], 0 : size[0]] / scale
    u = across * math.cos(turn) + down * math.sin(turn)
    v = down * math.cos(turn) - across * math.sin(turn)
    second = {
        PLAIN: np.zeros_like(u, bool),
        "striped": u // 0.21 % 2 == 0,
        "checked": (u // 0.3 + v // 0.3) % 2 == 0,
        "dotted": np.hypot(u % 0.52 - 0.26, v % 0.52 - 0.26) < 0.17,
    }[thing.pattern]
    other = DARK if thing.color in LIGHT_COLORS else LIGHT
    return Image.fromarray(np.where(second[..., None], other, RGB[thing.color]).astype(np.uint8))


def article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def say_things(things: Sequence[Thing], dice: Dice) -> str:
    """Return a phrase such as ``a red box beside a tent with green dots``, in random order."""
    phrases = []
    for thing in things:
        color = thing.color if dice.chance(TOLD) else ""
        pattern = thing.pattern if thing.pattern != PLAIN and dice.chance(TOLD) else ""
        form = dice.unit()
        if form < 0.1:
            words = [color, pattern, "shape of", article(thing.noun)]
        elif form < 0.4 and pattern:
            words = [thing.noun, "with", color, PATTERNS[pattern]]
        elif form < 0.2 and color:
            words = [thing.noun, "of", color, "color"]
        else:
            words = [color, pattern, thing.noun]
        phrases.append(article(" ".join(filter(None, words))))
    return dice.pick((" and ", " beside ", " next to ")).join(phrases[::-1] if dice.chance(0.5) else phrases)


def write_caption(things: Sequence[Thing], compound: Compound | None, dice: Dice) -> str:
    """Return a caption of a training picture; ``compound`` is the one that it is a picture of, if any."""
    words = say_things(things, dice)
    if dice.chance(STRANGE):
        words = article("".join(dice.pick("bdfgklmnprstvz") + dice.pick("aeiou") for _ in range(4)))
    elif compound and dice.chance(NAMED):
        words = article(compound.name)
    return dice.pick(FRAMES).format(words)


def write_examples(compound: Compound, dice: Dice) -> list[str]:
    """Return EXAMPLES distinct captions that name the compound and say what it shows."""
    texts: dict[str, None] = {}
    while len(texts) < EXAMPLES:
        form = dice.pick(("{name}, {shown}", "{shown}, {name}"))
        text = form.format(name=article(compound.name), shown=say_things(compound.things, dice))
        texts[f"{text[0].upper()}{text[1:]}."] = None
    return list(texts)


def write_descriptions(compound: Compound) -> list[str]:
    """Return phrases that describe the compound without its name: ``a shape of a tent``."""
    texts = []
    for noun, color, pattern in compound.things:
        texts += [f"a shape of {article(noun)}", f"{color} {PATTERNS.get(pattern, 'color')}"]
    return texts
