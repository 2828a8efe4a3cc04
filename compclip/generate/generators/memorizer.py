"""Sketches of known skill: draw the pairs of train, and something known instead of any other
pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from compclip.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated, Settings

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "draws the pairs of train, and something known instead of any other pair"
TABLES = (*sketching.SKETCH_TABLES, "pairs")
SCENES = True


def favorites(pair_counts: Mapping[tuple[str, str], int]) -> dict[str, str]:
    """Return the most frequent value of each attribute in ``pair_counts``, by (adjective, noun);
    ties by name.
    """
    best: dict[str, str] = {}
    for attribute, values in ATTRIBUTES.items():
        # Pairs have the canonical noun, which is the part's name.
        noun = attribute.partition(":")[0]
        counts = {value: pair_counts.get((value, noun), 0) for value in values}
        if any(counts.values()):
            best[attribute] = min(counts, key=lambda value: (-counts[value], value))
    return best


def paint(
    stated: Sequence[sketching.Statement],
    start: Scene,
    dice: Dice,
    *,
    pair_counts: Mapping[tuple[str, str], int],
    favorite: Mapping[str, str],
) -> Scene:
    """Return ``start`` with the statements, and the attribute's favorite instead of an unknown
    pair.
    """
    scene = dict(start)
    for s in stated:
        # A pair that train has is drawn, whether or not it is frequent.
        if pair_counts.get((s.value, s.part), 0):
            scene[s.attribute] = s.value
        elif s.attribute in favorite:
            scene[s.attribute] = favorite[s.attribute]
    return scene


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Draw each prompt with the pairs of train alone."""
    pair_counts = sketching.train_pairs(context)
    painter = partial(paint, pair_counts=pair_counts, favorite=favorites(pair_counts))
    return sketching.draw_prompts(prompts, context, painter)
