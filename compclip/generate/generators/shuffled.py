"""Real images of other captions, as from a generator that draws well but ignores the prompt."""

import pandas as pd

from compclip.core import seeds
from compclip.generate.generator import Context, Generated, Settings, manifest

ABOUT = "real images of other captions"
SPLITS = ("test_seen", "test_unseen")


def partners(ids: list[str], seed: int, *keys: str) -> list[str]:
    """Return ``ids`` in a random order; an image's partners are those that follow it."""
    ordered = sorted(ids)
    return [
        ordered[i] for i in seeds.rng(seed, "generate", "shuffled", *keys).permutation(len(ordered))
    ]


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt the file of another image with prompts in the same split, a different one
    for each draw.

    That image may be of the same class, because it must be independent of the caption.
    """
    paths = context.tables["images"].dropna(subset="path").set_index("image_id")["path"]
    given: dict[tuple[str, str, int], str] = {}
    for split, rows in prompts.groupby("split"):
        ring = partners(
            [i for i in rows["image_id"].unique() if i in paths.index], context.seed, str(split)
        )
        for place, image_id in enumerate(ring):
            for draw in rows["draw"].unique():
                if len(ring) > 1:
                    given[split, image_id, draw] = paths[
                        ring[(place + 1 + draw % (len(ring) - 1)) % len(ring)]
                    ]
    keys = zip(prompts["split"], prompts["image_id"], prompts["draw"], strict=True)
    return Generated(manifest(prompts, [given.get(key) for key in keys], "skipped"))
