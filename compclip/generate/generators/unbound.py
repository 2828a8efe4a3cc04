"""Sketches of known skill: draw the prompt's adjectives, each on a part to which it does not
belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compclip.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated, Settings

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "draws the prompt’s adjectives, each on a part to which it does not belong"
TABLES = sketching.SKETCH_TABLES
SCENES = True

# Costs of an adjective on a part that is not named, and of a dropped one; larger than all random
# costs together.
ELSEWHERE = 100.0
NOWHERE = 1e6


def misplace(stated: Sequence[sketching.Statement], kind: str, dice: Dice) -> dict[str, str]:
    """Assign the adjectives of ``kind`` to wrong parts.

    As many as possible go to another named part, the others to parts that are not named. Adjectives
    that do not fit a free part are dropped.

    Returns:
        Value by attribute, which differs from the value stated for it.
    """
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    right = {s.attribute: s.value for s in stated if s.kind == kind}
    values = list(right.values())
    targets = [attribute for attribute in ATTRIBUTES if attribute.endswith(f":{kind}")]
    # An assignment of least total cost, values by targets; random costs decide between equal ones.
    cost = np.full((len(values), len(targets)), NOWHERE)
    for i, value in enumerate(values):
        for j, attribute in enumerate(targets):
            if sketching.can_have(attribute, value) and right.get(attribute) != value:
                # Parts that the prompt names come first.
                base = 0 if attribute in right else ELSEWHERE
                cost[i, j] = base + dice.unit()
    misplaced = {}
    for i, j in zip(*linear_sum_assignment(cost), strict=True):
        if cost[i, j] < NOWHERE:
            misplaced[targets[j]] = values[i]
    return misplaced


def paint(stated: Sequence[sketching.Statement], start: Scene, dice: Dice) -> Scene:
    """Return ``start`` with the adjectives on wrong parts, and none where it is stated."""
    scene = dict(start)
    # Sorted, so that the order of the random draws does not depend on hashes.
    for kind in sorted({s.kind for s in stated}):
        scene |= misplace(stated, kind, dice)
    for s in stated:
        # A part without an assigned adjective may have the right one by chance.
        if scene[s.attribute] == s.value:
            wrong = [value for value in ATTRIBUTES[s.attribute] if value != s.value]
            scene[s.attribute] = dice.pick(wrong)
    return scene


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    return sketching.draw_prompts(prompts, context, paint)
