"""Sketches of known skill: ignore the prompt."""

from collections.abc import Sequence

import pandas as pd

from workflow_scripts.dataset.sketch.world import Dice, Scene
from workflow_scripts.generate import sketching
from workflow_scripts.generate.generator import Context, Generated, Settings

ABOUT = "ignores the prompt"
TABLES = sketching.TABLES
SCENES = True


def paint(stated: Sequence[sketching.Statement], start: Scene, dice: Dice) -> Scene:
    return dict(start)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    return sketching.draw_prompts(prompts, context, paint)
