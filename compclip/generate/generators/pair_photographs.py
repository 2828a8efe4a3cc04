"""Photographs of the pairs of swapped captions: judged images of test_unseen whose captions state
the prompt's pair.

Photographs of what swapped captions describe do not exist. These show the pair but not the rest of
the caption, so only their adjective accuracy is a reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compclip.core.artifacts.heldout import split_pair
from compclip.generate.generator import Context, Generated, Settings
from compclip.generate.generators.usual_photographs import draw_images, with_images

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "other photographs that show the pair of a swapped caption"
SPLITS = ("test_swapped",)
TABLES = ("images", "pairs", "prompts")


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt a photograph of its pair; nothing is copied."""
    accepted = [[split_pair(pair)] for pair in prompts["pair"]]
    # The name of the random stream decides which photographs are drawn: keep it.
    image_ids = draw_images(prompts, accepted, context, "test_unseen", "stand_ins")
    return with_images(prompts, image_ids, context)
