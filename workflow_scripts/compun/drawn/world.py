"""Draw scenes: things with a color and a pattern, at a place, and what compounds of their names show.

A compound's picture shows the thing of one of its nouns, changed (``either``), both things (``both``), or another thing
(``none``): the three kinds of Kumar et al. 2024, section 6. All pictures of a compound differ only in pose and place.
"""

from dataclasses import dataclass
from itertools import combinations

from workflow_scripts.compun.drawn.things import THINGS
from workflow_scripts.core import seeds
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.tables import NOUNS_SEEN
from workflow_scripts.dataset.sketch.world import Dice

NOUNS = tuple(THINGS)
COLORS = ("black", "blue", "brown", "green", "orange", "pink", "purple", "red", "yellow")
PLAIN = "plain"
PATTERNS = ("striped", "dotted", "checked")
PLACES = ("grass", "sand", "snow", "water", "stone")
PLAIN_FRACTION = 0.5  # of pictures of single things; a changed thing is never plain


@dataclass(frozen=True)
class Thing:
    """A thing of NOUNS and COLORS; its pattern is of PATTERNS, or PLAIN, which no caption mentions."""

    noun: str
    color: str
    pattern: str


@dataclass(frozen=True)
class Scene:
    """One thing, or two side by side, at one of PLACES."""

    things: tuple[Thing, ...]
    place: str


@dataclass(frozen=True)
class Compound:
    """A compound; its name is made of the nouns ``first`` and ``second``, and its picture shows ``things``."""

    name: str
    first: str
    second: str
    kind: str
    things: tuple[Thing, ...]


def draw_thing(noun: str, dice: Dice, plain: float = PLAIN_FRACTION) -> Thing:
    """Return a thing of random color; plain with the probability ``plain``, otherwise with a random pattern."""
    return Thing(noun, dice.pick(COLORS), PLAIN if dice.chance(plain) else dice.pick(PATTERNS))


def draw_scene(things: tuple[Thing, ...], dice: Dice) -> Scene:
    return Scene(things, dice.pick(PLACES))


def draw_compounds(seed: int, number: int) -> list[Compound]:
    """Return ``number`` compounds, equally many of each kind (give or take one), each of other two nouns.

    Two things in a picture differ in color; a third thing is of neither noun. UserError if there are too few pairs.
    """
    pairs = list(combinations(NOUNS, 2))
    if number > len(pairs):
        raise UserError(f"{number} compounds: {len(NOUNS)} nouns make only {len(pairs)} pairs; lower tested or others")
    dice = Dice(seeds.rng(seed, "draw_compounds", "compounds"))
    chosen = dice.several(pairs, [1.0] * len(pairs), number)
    # Alternately, one of each kind written apart and one of each as one word, as 176 of the benchmark's 400 are.
    return [
        _compound(pair, NOUNS_SEEN[at % len(NOUNS_SEEN)], at // len(NOUNS_SEEN) % 2 == 1, dice)
        for at, pair in enumerate(chosen)
    ]


def _compound(pair: tuple[str, str], kind: str, closed: bool, dice: Dice) -> Compound:
    first, second = pair if dice.chance(0.5) else pair[::-1]
    things: tuple[Thing, ...]
    if kind == "either":
        things = (draw_thing(dice.pick(pair), dice, plain=0),)
    elif kind == "none":
        things = (draw_thing(dice.pick([noun for noun in NOUNS if noun not in pair]), dice),)
    else:
        one, other = (draw_thing(noun, dice, plain=1) for noun in (first, second))
        while one.color == other.color:
            other = draw_thing(second, dice, plain=1)
        things = (one, other)
    return Compound(f"{first}{second}" if closed else f"{first} {second}", first, second, kind, things)
