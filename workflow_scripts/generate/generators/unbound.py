"""Sketches of known skill: draws the prompt's adjectives, each on a part that it does not belong to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations

import pandas as pd

from workflow_scripts.common.section import Section
from workflow_scripts.dataset.sketch.world import ATTRIBUTES, PARTS, Dice, Scene
from workflow_scripts.generate import sketching
from workflow_scripts.generate.generator import Context, Generated

SPLITS = sketching.SPLITS


class Settings(Section):
    """None."""


def misplace(stated: Sequence[sketching.Statement], kind: str, dice: Dice) -> dict[str, str]:
    """The adjectives of ``kind`` on wrong parts: attribute to value, no part with what is stated of it.

    They are permuted over the named parts, so that as many as can be find a part that can have them and is
    not their own; one that finds none goes to a part that the prompt does not name, where one can have it.
    """
    right = {s.attribute: s.value for s in stated if s.kind == kind}
    attributes = dice.several(list(right), [1.0] * len(right), len(right))
    values = [right[a] for a in attributes]

    def wrong(attribute: str, value: str) -> bool:
        return value != right[attribute] and sketching.can_have(attribute, value)

    # The first of the best: attributes come shuffled.
    order = max(permutations(values), key=lambda p: sum(map(wrong, attributes, p)))
    placed = {a: v for a, v in zip(attributes, order, strict=True) if wrong(a, v)}
    others = [f"{part}:{kind}" for part in PARTS if f"{part}:{kind}" not in right]
    for attribute, value in zip(attributes, order, strict=True):
        free = [a for a in others if a not in placed and sketching.can_have(a, value)]
        if attribute not in placed and free:
            placed[dice.pick(free)] = value
    return placed


def paint(stated: Sequence[sketching.Statement], start: Scene, dice: Dice, *, kind: str) -> Scene:
    """``start`` with what is stated, the adjectives of ``kind`` misplaced."""
    placed = misplace(stated, kind, dice)
    scene = {**start, **{s.attribute: s.value for s in stated if s.kind != kind}, **placed}
    for s in stated:
        # A part that got no adjective may have the right one by chance.
        if s.kind == kind and scene[s.attribute] == s.value:
            scene[s.attribute] = dice.pick([v for v in ATTRIBUTES[s.attribute] if v != s.value])
    return scene


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    return sketching.draw_prompts(prompts, context, partial(paint, kind=context.composition))
