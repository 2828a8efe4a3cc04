"""Real images of other captions: what a generator reaches that draws well and listens to nothing."""

from __future__ import annotations

import pandas as pd

from workflow_scripts.core import seeds, tables
from workflow_scripts.core.io import read_table
from workflow_scripts.core.section import Section
from workflow_scripts.generate.generator import Context, Generated, manifest

SPLITS = ("test_seen", "test_unseen")
TABLES = ("images",)


class Settings(Section):
    """None."""


def partners(ids: list[str], seed: int, *keys: str) -> list[str]:
    """``ids`` in an order that is a ring: whoever follows is another's, so that nobody meets their own."""
    ordered = sorted(ids)
    return [ordered[i] for i in seeds.rng(seed, "generate", "shuffled", *keys).permutation(len(ordered))]


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """For each prompt the image of another image's prompts in the same split; another one for each draw.

    The other may be of the same class: the image is then independent of the caption, as chance demands.
    """
    images = read_table(context.tables["images"], tables.IMAGES)
    paths = images.dropna(subset="path").set_index("image_id")["path"]
    given: dict[tuple[str, str, int], str] = {}
    for split, part in prompts.groupby("split"):
        ring = partners([i for i in part["image_id"].unique() if i in paths.index], context.seed, str(split))
        for place, image_id in enumerate(ring):
            for draw in part["draw"].unique():
                if len(ring) > 1:
                    given[split, image_id, draw] = paths[ring[(place + 1 + draw % (len(ring) - 1)) % len(ring)]]
    keys = zip(prompts["split"], prompts["image_id"], prompts["draw"], strict=True)
    return Generated(manifest(prompts, [given.get(key) for key in keys]))
