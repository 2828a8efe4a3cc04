"""The world of drawn birds: parts, colors, shapes, species with their habits, and scenes.

Every value is a canonical word of ``lexicons/``. A part has one color. Its shape is visibly
distinct or ordinary (null). Captions never mention an ordinary shape, so a stated shape is
informative.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from compclip.core import seeds

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

SKETCH_COLORS = (
    "black",
    "blue",
    "brown",
    "gray",
    "green",
    "orange",
    "pink",
    "purple",
    "red",
    "tan",
    "white",
    "yellow",
)

# The shapes of each part besides the ordinary one; all are visibly different.
PART_SHAPES: dict[str, tuple[str, ...]] = {
    "belly": ("flat", "large", "pointed", "small"),
    "bill": ("curved", "flat", "long", "pointed", "short", "straight", "thick", "thin"),
    "crown": ("curved", "flat", "long", "pointed", "round", "small"),
    "eye": ("large", "small", "thin"),
    "foot": ("curved", "flat", "large", "pointed", "small"),
    "tail": ("curved", "long", "pointed", "round", "short", "thin", "wide"),
    "tarsus": ("curved", "long", "short", "thick", "thin"),
    "wing": ("curved", "long", "pointed", "round", "short", "thin", "wide"),
}
PARTS = (
    "back",
    "belly",
    "bill",
    "breast",
    "crown",
    "eye",
    "foot",
    "head",
    "nape",
    "tail",
    "tarsus",
    "throat",
    "wing",
)
ATTRIBUTE_KINDS = ("color", "shape")

# The values of each attribute, part:kind; the attributes are columns of scenes.parquet.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    **{f"{part}:color": SKETCH_COLORS for part in PARTS},
    **{f"{part}:shape": shapes for part, shapes in PART_SHAPES.items()},
}

# Fractions of a part's values, from its most common to its rarest. Two or three colors cover most
# birds, so that captions distinguish birds; the others are rare, so that a held-out pair costs few
# images. The common colors of all parts must stay clear of the middle of the ranking, so a part
# without shapes has fewer of them. The remaining fraction of shapes is ordinary.
RARE_COLORS = (0.035, 0.02, 0.013, 0.01, 0.008, 0.006, 0.005, 0.004, 0.004)
SHAPED_COLORS = (0.325, 0.305, 0.265, *RARE_COLORS)
PLAIN_COLORS = (0.46, 0.431, *RARE_COLORS, 0.004)
SHAPE_FRACTIONS = (0.35, 0.09, 0.05, 0.035, 0.025, 0.02, 0.016, 0.014)
# Fractions of an individual's attributes that follow its species' habit, and that are drawn
# uniformly.
LOYAL = 0.7
STRAY = 0.03

Scene = dict[str, str | None]


class Dice:
    """Random choices from one generator, drawn in blocks, which is ten times faster than one by
    one.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.left: list[float] = []

    def unit(self) -> float:
        """Return a number in [0, 1)."""
        if not self.left:
            self.left = self.rng.random(128).tolist()
        return self.left.pop()

    def chance(self, probability: float) -> bool:
        return self.unit() < probability

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.unit()

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.unit() * len(items))]

    def weighted(self, items: Sequence[T], cumulative: Sequence[float]) -> T:
        """Draw one of ``items``; ``cumulative`` are the cumulative sums of their weights."""
        target = self.unit() * cumulative[-1]
        index = bisect(cumulative, target)
        # The product may round up to the last sum.
        return items[min(index, len(items) - 1)]

    def several(self, items: Sequence[T], weights: Sequence[float], n: int) -> list[T]:
        """Draw ``n`` items by weight, without replacement."""
        remaining = list(items)
        remaining_weights = list(weights)
        chosen = []
        for _ in range(n):
            cumulative = list(accumulate(remaining_weights))
            index = self.weighted(range(len(remaining)), cumulative)
            chosen.append(remaining.pop(index))
            remaining_weights.pop(index)
        return chosen


@dataclass(frozen=True)
class SketchWorld:
    """The values of each attribute by frequency, their cumulative fractions, and the species'
    habits.
    """

    values: dict[str, tuple[str | None, ...]]
    cumulative: dict[str, tuple[float, ...]]
    habits: tuple[Scene, ...]


def _spread(n: int, dice: Dice) -> list[float]:
    """Return ``n`` numbers in random order, one in each ``n``-th of [0, 1).

    With independent numbers, the habits of a few species would not follow the fractions.
    """
    order = dice.several(range(n), [1.0] * n, n)
    return [(stratum + dice.unit()) / n for stratum in order]


def _cumulative_fractions(attribute: str) -> tuple[float, ...]:
    """Return the cumulative fractions of an attribute's values, from the most common one."""
    if attribute.endswith(":shape"):
        distinct = SHAPE_FRACTIONS[: len(ATTRIBUTES[attribute])]
        # The ordinary shape is last and takes the remaining fraction.
        return (*accumulate(distinct), 1.0)
    bird_part = attribute.partition(":")[0]
    colors = SHAPED_COLORS if bird_part in PART_SHAPES else PLAIN_COLORS
    return tuple(accumulate(colors))


def make_world(seed: int, species: int) -> SketchWorld:
    """Return a world with random frequencies of each part's values, and habits of each species."""
    dice = Dice(seeds.rng(seed, "sketch", "world"))
    values: dict[str, tuple[str | None, ...]] = {}
    cumulative: dict[str, tuple[float, ...]] = {}
    habits: list[Scene] = [{} for _ in range(species)]
    # In the order of ``ATTRIBUTES``: another order would give other worlds for a seed.
    for attribute, options in ATTRIBUTES.items():
        # The rank of a value, from the most common one, is random.
        ranking: list[str | None] = [*dice.several(options, [1.0] * len(options), len(options))]
        if attribute.endswith(":shape"):
            ranking.append(None)
        fractions = _cumulative_fractions(attribute)
        values[attribute] = tuple(ranking)
        cumulative[attribute] = fractions
        for habit, quantile in zip(habits, _spread(species, dice), strict=True):
            rank = bisect(fractions, quantile)
            # The sum of the fractions may round to less than 1.
            habit[attribute] = ranking[min(rank, len(ranking) - 1)]
    return SketchWorld(values, cumulative, tuple(habits))


def draw_wild_scene(dice: Dice) -> Scene:
    """Draw a wild bird: all attributes are independent and uniform, without habits or rare
    pairs.
    """
    scene: Scene = {}
    for attribute, values in ATTRIBUTES.items():
        options = (*values, None) if attribute.endswith(":shape") else values
        scene[attribute] = dice.pick(options)
    return scene


def draw_scene(world: SketchWorld, species: int, dice: Dice) -> Scene:
    """Draw one bird of a species: mostly its habits, sometimes values by frequency, rarely uniform
    values.
    """
    scene: Scene = {}
    for attribute, habit in world.habits[species].items():
        if dice.chance(STRAY):
            scene[attribute] = dice.pick(world.values[attribute])
        elif dice.chance(LOYAL):
            scene[attribute] = habit
        else:
            scene[attribute] = dice.weighted(world.values[attribute], world.cumulative[attribute])
    return scene
