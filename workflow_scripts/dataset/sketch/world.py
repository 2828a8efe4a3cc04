"""What there is to draw and to say: parts, colors, shapes, species with habits of their own, and scenes.

Every value is a canonical word of ``lexicons/``. A part has one color. Its shape is one of those it can
visibly have, or ordinary (null), which no caption mentions: that keeps a stated shape telling.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np

from workflow_scripts.core import seeds

T = TypeVar("T")

COLORS = ("black", "blue", "brown", "gray", "green", "orange", "pink", "purple", "red", "tan", "white", "yellow")

# The shapes that a part can have beside the ordinary one; any two differ by what their pixels show.
SHAPES: dict[str, tuple[str, ...]] = {
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
    "back", "belly", "bill", "breast", "crown", "eye", "foot", "head", "nape", "tail", "tarsus", "throat", "wing",
)  # fmt: skip
KINDS = ("color", "shape")

# part:kind to the values it can have. The names are the columns of scenes.parquet.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    **{f"{part}:color": COLORS for part in PARTS},
    **{f"{part}:shape": shapes for part, shapes in SHAPES.items()},
}

# How often a value occurs, from the part's most common to its rarest. Two or three colors share most of the
# birds, so that a caption tells them apart; the others share little, so that a held-out pair costs few images.
# The common ones of all parts must stay clear of the middle of the ranking, hence fewer where there are no shapes.
# A shape takes what the shapes before it leave; what is left at the end is ordinary.
RARE_COLORS = (0.035, 0.02, 0.013, 0.01, 0.008, 0.006, 0.005, 0.004, 0.004)
SHAPED_COLORS = (0.325, 0.305, 0.265, *RARE_COLORS)
PLAIN_COLORS = (0.46, 0.431, *RARE_COLORS, 0.004)
SHAPE_SHARES = (0.35, 0.09, 0.05, 0.035, 0.025, 0.02, 0.016, 0.014)
# Of the attributes of an individual, the share that is its species' own, and the share that is anything at all.
LOYAL = 0.7
STRAY = 0.03

Scene = dict[str, str | None]


class Dice:
    """Choices from one generator, many at a time: numpy's own cost ten times as much one by one."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.left: list[float] = []

    def unit(self) -> float:
        """A number from 0 to 1, 1 not included."""
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
        """One of ``items``; ``cumulative`` are the running sums of their weights."""
        mark = self.unit() * cumulative[-1]
        for item, bound in zip(items, cumulative, strict=True):
            if mark < bound:
                return item
        return items[-1]

    def several(self, items: Sequence[T], weights: Sequence[float], n: int) -> list[T]:
        """``n`` different ones, each drawn by weight from what is left."""
        rest, loads = list(items), list(weights)
        chosen = []
        for _ in range(n):
            index = self.weighted(range(len(rest)), list(accumulate(loads)))
            chosen.append(rest.pop(index))
            loads.pop(index)
        return chosen


@dataclass(frozen=True)
class World:
    """For each attribute its values in order of frequency and their running shares; the species' habits."""

    values: dict[str, tuple[str | None, ...]]
    shares: dict[str, tuple[float, ...]]
    habits: tuple[Scene, ...]


def _spread(n: int, dice: Dice) -> list[float]:
    """``n`` numbers from 0 to 1 in random order, one in each ``n``-th: habits follow the shares closely."""
    return [(place + dice.unit()) / n for place in dice.several(range(n), [1.0] * n, n)]


def make_world(seed: int, species: int) -> World:
    """Which values are common on which part, and each species' habits, spread by those shares."""
    dice = Dice(seeds.rng(seed, "sketch", "world"))
    values: dict[str, tuple[str | None, ...]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    habits: list[Scene] = [{} for _ in range(species)]
    for name, known in ATTRIBUTES.items():
        order: list[str | None] = [*dice.several(known, [1.0] * len(known), len(known))]
        if name.endswith(":shape"):
            order.append(None)
            shares[name] = (*accumulate(SHAPE_SHARES[: len(known)]), 1.0)
        else:
            part = name.partition(":")[0]
            shares[name] = tuple(accumulate(SHAPED_COLORS if part in SHAPES else PLAIN_COLORS))
        values[name] = tuple(order)
        for habit, mark in zip(habits, _spread(species, dice), strict=True):
            habit[name] = order[min(bisect(shares[name], mark), len(order) - 1)]
    return World(values, shares, tuple(habits))


def draw_scene(world: World, species: int, dice: Dice) -> Scene:
    """One bird of a species: mostly its habits, now and then what any bird has, rarely anything at all."""
    scene: Scene = {}
    for name, habit in world.habits[species].items():
        if dice.chance(STRAY):
            scene[name] = dice.pick(world.values[name])
        elif dice.chance(LOYAL):
            scene[name] = habit
        else:
            scene[name] = dice.weighted(world.values[name], world.shares[name])
    return scene
