"""The real images of test_seen and test_unseen: an upper bound for generators."""

import pandas as pd

from workflow_scripts.core import tables
from workflow_scripts.core.io import read_table
from workflow_scripts.generate.generator import Context, Generated, Settings, manifest

ABOUT = "the real images of the captions"
SPLITS = ("test_seen", "test_unseen")


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt the path of its own image; nothing is copied."""
    images = read_table(context.tables["images"], tables.IMAGES)
    paths = images.dropna(subset="path").set_index("image_id")["path"]
    return Generated(manifest(prompts, prompts["image_id"].map(paths)))
