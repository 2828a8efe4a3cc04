"""Sketches of known skill: ignore the prompt."""

from collections.abc import Sequence

import pandas as pd

from compclip.dataset.sketch.world import Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated, Settings

ABOUT = "ignores the prompt"
TABLES = sketching.SKETCH_TABLES
SCENES = True


def paint(stated: Sequence[sketching.Statement], start: Scene, dice: Dice) -> Scene:
    return dict(start)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    return sketching.draw_prompts(prompts, context, paint)
