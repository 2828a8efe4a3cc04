"""Sketches of known skill: draw a usual adjective of the noun instead of the asked one, of seen
pairs, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from compclip.dataset.sketch.world import Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated, Settings
from compclip.generate.generators.memorizer import favorites

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "draws a usual adjective of the noun instead of the asked one"
SPLITS = ("test_seen",)
TABLES = (*sketching.SKETCH_TABLES, "pairs")
SCENES = True


def paint(
    stated: Sequence[sketching.Statement],
    start: Scene,
    dice: Dice,
    *,
    pair_counts: Mapping[tuple[str, str], int],
    kind: str,
) -> Scene:
    """Return ``start`` with the statements; for those of ``kind`` the most frequent other value of
    the part.
    """
    scene = {**start, **{s.attribute: s.value for s in stated}}
    for s in stated:
        if s.kind != kind:
            continue
        stated_pair = (s.value, s.part)
        # As if train did not have the stated pair, which may be the most frequent one.
        other_pairs = {pair: count for pair, count in pair_counts.items() if pair != stated_pair}
        # If train has no other value of the part, the stated one stays.
        scene[s.attribute] = favorites(other_pairs).get(s.attribute, s.value)
    return scene


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    pair_counts = sketching.train_pairs(context)
    painter = partial(paint, pair_counts=pair_counts, kind=context.composition)
    return sketching.draw_prompts(prompts, context, painter)
