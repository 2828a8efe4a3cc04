"""What there is to draw and to say: parts, colors, shapes, species with habits of their own, and scenes.

Every value is a canonical word of ``lexicons/``. A part has one color. Its shape is one of those it can
visibly have, or ordinary (null), which no caption mentions: that keeps a stated shape telling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np

from workflow_scripts.common import seeds

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

# How often a value occurs, from the part's most common to its rarest: three colors share most of the
# birds, so that a caption tells them apart; the others share little, so that a held-out pair costs few images.
COMMON_COLORS = (0.325, 0.305, 0.265)
ORDINARY_SHAPE = 0.4
TAIL_EXPONENT = 1.2
SHAPE_EXPONENT = 1.8
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


def _zipf(n: int, exponent: float) -> list[float]:
    weights = [(rank + 1) ** -exponent for rank in range(n)]
    return [w / sum(weights) for w in weights]


def _shares(kind: str, n: int) -> list[float]:
    """The shares of ``n`` values in order of frequency; of a shape, the ordinary one first."""
    if kind == "color":
        rare = 1 - sum(COMMON_COLORS)
        return [*COMMON_COLORS, *(rare * w for w in _zipf(n - len(COMMON_COLORS), TAIL_EXPONENT))]
    return [ORDINARY_SHAPE, *((1 - ORDINARY_SHAPE) * w for w in _zipf(n - 1, SHAPE_EXPONENT))]


def make_world(seed: int, species: int) -> World:
    """Which values are common on which part, and each species' habits, drawn from those frequencies."""
    dice = Dice(seeds.rng(seed, "sketch", "world"))
    values: dict[str, tuple[str | None, ...]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    for name, known in ATTRIBUTES.items():
        kind = name.partition(":")[2]
        order: list[str | None] = [*dice.several(known, [1.0] * len(known), len(known))]
        values[name] = tuple(order if kind == "color" else [None, *order])
        shares[name] = tuple(accumulate(_shares(kind, len(values[name]))))
    habits = tuple({name: dice.weighted(values[name], shares[name]) for name in ATTRIBUTES} for _ in range(species))
    return World(values, shares, habits)


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
