"""Sketches of known skill: draw the pairs of train, and each prompt with another pair by chance.

The other sketches start from the same birds, so that a score may compare them prompt by prompt.
These start from birds and poses of their own, optionally in another light and size, so that they
test an estimate on images that decided nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from compclip.core.settings.section import Section
from compclip.dataset.sketch.world import Dice, Scene
from compclip.generate import sketching
from compclip.generate.generator import Context, Generated
from compclip.generate.generators import faithful, memorizer

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "draws the pairs of train, and a fraction of all other prompts as they say"
TABLES = (*sketching.SKETCH_TABLES, "pairs")
SCENES = True


class Settings(Section):
    """How much it composes, and its style."""

    fraction: float = Field(
        0.5, ge=0, le=1, description="probability that a prompt's held-out pairs are drawn"
    )
    light: float = Field(
        1.0, gt=0, le=1.2, description="brightness, relative to the data set's images"
    )
    size: float = Field(
        1.0, gt=0, le=1.2, description="size of the bird, relative to the data set's images"
    )


def paint(
    stated: Sequence[sketching.Statement],
    start: Scene,
    dice: Dice,
    *,
    fraction: float,
    pair_counts: Mapping[tuple[str, str], int],
    favorite: Mapping[str, str],
) -> Scene:
    """Return ``start`` with the statements; pairs that train lacks are drawn with a probability of
    ``fraction``, else their noun's favorite.
    """
    if dice.chance(fraction):
        return faithful.paint(stated, start, dice)
    return memorizer.paint(stated, start, dice, pair_counts=pair_counts, favorite=favorite)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    pair_counts = sketching.train_pairs(context)
    painter = partial(
        paint,
        fraction=settings.fraction,
        pair_counts=pair_counts,
        favorite=memorizer.favorites(pair_counts),
    )
    style = sketching.Style(settings.light, settings.size, stream="half")
    return sketching.draw_prompts(prompts, context, painter, style)
