"""What there is to draw: things with a color and a pattern, at a place; compounds of their names, and what these show.

A compound's picture shows one of its nouns' things, changed (``either``), both (``both``), or another thing
(``none``): the three kinds of Kumar et al. 2024, section 6. What it shows is the same each time but for pose and place.
"""

from __future__ import annotations

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
# Of pictures of single things, so many are plain; a changed thing is not.
PLAIN_SHARE = 0.5


@dataclass(frozen=True)
class Thing:
    """noun: of NOUNS; color: of COLORS; pattern: of PATTERNS, or PLAIN, which no caption mentions."""

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
    """``name`` is made of the nouns ``first`` and ``second``, and its picture shows ``things``."""

    name: str
    first: str
    second: str
    kind: str
    things: tuple[Thing, ...]


def draw_thing(noun: str, dice: Dice, plain: float = PLAIN_SHARE) -> Thing:
    """A thing of any color; plain with that probability, or else of any pattern."""
    return Thing(noun, dice.pick(COLORS), PLAIN if dice.chance(plain) else dice.pick(PATTERNS))


def draw_scene(things: tuple[Thing, ...], dice: Dice) -> Scene:
    return Scene(things, dice.pick(PLACES))


def draw_compounds(seed: int, number: int) -> list[Compound]:
    """``number`` compounds, as many of each kind up to one, no two of the same two nouns.

    Two things of a picture differ in color; a third thing is of neither noun. Raises UserError where there are not as
    many pairs of nouns.
    """
    pairs = list(combinations(NOUNS, 2))
    if number > len(pairs):
        raise UserError(f"{number} compounds: {len(NOUNS)} nouns make {len(pairs)} pairs: ask for fewer")
    dice = Dice(seeds.rng(seed, "draw_compounds", "compounds"))
    chosen = dice.several(pairs, [1.0] * len(pairs), number)
    # One of each kind written apart, then one of each as one word, as 176 of the benchmark's 400 are, and so on.
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
