"""The real images of test_seen and test_unseen: an upper bound for generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compclip.generate.generator import Context, Generated, Settings, manifest

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "the real images of the captions"
SPLITS = ("test_seen", "test_unseen")
REAL_IMAGES = True


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt the path of its own image; nothing is copied."""
    # An image without a file has no path; its prompts are skipped.
    paths = context.tables["images"].dropna(subset="path").set_index("image_id")["path"]
    return Generated(manifest(prompts, prompts["image_id"].map(paths), "skipped"))
