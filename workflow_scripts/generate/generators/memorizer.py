"""Sketches of known skill: knows the pairs of train alone, and draws something it knows for any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd

from workflow_scripts.core.section import Section
from workflow_scripts.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from workflow_scripts.generate import sketching
from workflow_scripts.generate.generator import Context, Generated

SPLITS = sketching.SPLITS
TABLES = (*sketching.TABLES, "pairs")
SCENES = True


class Settings(Section):
    """None."""


def favorites(known: Mapping[tuple[str, str], int]) -> dict[str, str]:
    """For each attribute the value that occurs most often in ``known`` (adjective, noun); ties by name."""
    best: dict[str, str] = {}
    for attribute, values in ATTRIBUTES.items():
        noun = attribute.partition(":")[0]
        seen = [v for v in values if known.get((v, noun), 0)]
        if seen:
            best[attribute] = min(seen, key=lambda v: (-known[v, noun], v))
    return best


def paint(
    stated: Sequence[sketching.Statement],
    start: Scene,
    dice: Dice,
    *,
    known: Mapping[tuple[str, str], int],
    favorite: Mapping[str, str],
) -> Scene:
    """``start`` with what is stated; in place of an unknown pair its part's favorite."""
    scene = dict(start)
    for s in stated:
        if known.get((s.value, s.part), 0):
            scene[s.attribute] = s.value
        elif s.attribute in favorite:
            scene[s.attribute] = favorite[s.attribute]
    return scene


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    known = sketching.train_pairs(context)
    return sketching.draw_prompts(prompts, context, partial(paint, known=known, favorite=favorites(known)))
