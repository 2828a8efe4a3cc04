"""Sketches of known skill: draw the prompt's adjectives, each on a part to which it does not
belong.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from compclip.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated, Settings

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
    right = {s.attribute: s.value for s in stated if s.kind == kind}
    targets = [a for a in ATTRIBUTES if a.endswith(f":{kind}")]
    values = list(right.values())
    cost = np.full((len(values), len(targets)), NOWHERE)
    for i, value in enumerate(values):
        for j, attribute in enumerate(targets):
            if sketching.can_have(attribute, value) and right.get(attribute) != value:
                cost[i, j] = (0 if attribute in right else ELSEWHERE) + dice.unit()
    chosen = zip(*linear_sum_assignment(cost), strict=True)
    return {targets[j]: values[i] for i, j in chosen if cost[i, j] < NOWHERE}


def paint(stated: Sequence[sketching.Statement], start: Scene, dice: Dice) -> Scene:
    scene = dict(start)
    for kind in sorted({s.kind for s in stated}):
        scene |= misplace(stated, kind, dice)
    for s in stated:
        # A part without an assigned adjective may have the right one by chance.
        if scene[s.attribute] == s.value:
            scene[s.attribute] = dice.pick([v for v in ATTRIBUTES[s.attribute] if v != s.value])
    return scene


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    return sketching.draw_prompts(prompts, context, paint)
