"""Sketches of known skill: ignore the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compclip.dataset.sketch.world import Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated, Settings

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "ignores the prompt"
TABLES = sketching.SKETCH_TABLES
SCENES = True


def paint(stated: Sequence[sketching.Statement], start: Scene, dice: Dice) -> Scene:
    return dict(start)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    return sketching.draw_prompts(prompts, context, paint)
