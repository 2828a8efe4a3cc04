"""Real images of other captions, as from a generator that draws well but ignores the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compclip.core import seeds
from compclip.generate.generator import Context, Generated, Settings, manifest

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "real images of other captions"
SPLITS = ("test_seen", "test_unseen")
REAL_IMAGES = True


def partners(ids: list[str], seed: int, *keys: str) -> list[str]:
    """Return ``ids`` in a random order; an image's partners are those that follow it."""
    # Sorted, so that the order depends on the images alone.
    ordered = sorted(ids)
    generator = seeds.rng(seed, "generate", "shuffled", *keys)
    return [ordered[index] for index in generator.permutation(len(ordered))]


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt the file of another image with prompts in the same split, a different one
    for each draw.

    That image may be of the same class, because it must be independent of the caption.
    """
    paths = context.tables["images"].dropna(subset="path").set_index("image_id")["path"]
    path_by_prompt: dict[tuple[str, str, int], str] = {}
    for split, rows in prompts.groupby("split"):
        ids = [image_id for image_id in rows["image_id"].unique() if image_id in paths.index]
        ring = partners(ids, context.seed, str(split))
        if len(ring) < 2:
            # A single image has no partner.
            continue
        for position, image_id in enumerate(ring):
            for draw in rows["draw"].unique():
                # Never 0: an image is not its own partner.
                offset = 1 + draw % (len(ring) - 1)
                partner = ring[(position + offset) % len(ring)]
                path_by_prompt[split, image_id, draw] = paths[partner]
    keys = zip(prompts["split"], prompts["image_id"], prompts["draw"], strict=True)
    return Generated(manifest(prompts, map(path_by_prompt.get, keys), "skipped"))
