"""Photographs as a memorizing model would draw: the prompt's noun with a usual adjective instead of
the prompt's.

A swapped prompt gets the photograph of the caption before the swap. Another prompt gets a judged
photograph of test_seen whose captions state the noun with an adjective of the prompt's variants;
frequent ones are drawn more often. Their captions do not state the prompt's own pair: none states a
held-out pair, and those that state a seen one are not taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from compclip.core import seeds
from compclip.core.artifacts.heldout import split_pair
from compclip.generate.generator import Context, Generated, Settings, manifest

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "photographs of the noun with a usual adjective"
TABLES = ("images", "pairs", "prompts", "variants")


def stating_images(context: Context, split: str) -> dict[tuple[str, str], list[str]]:
    """Return the judged images of a split whose captions state each pair (adjective, noun)."""
    images = context.tables["images"].dropna(subset="path")
    prompts = context.tables["prompts"]
    prompted = prompts.loc[prompts["split"] == split, "image_id"]
    judged = set(images["image_id"]) & set(prompted)
    pairs = context.tables["pairs"]
    # A disputed pair may not be what the photograph shows.
    pairs = pairs[(pairs["relation"] != "disputed") & pairs["image_id"].isin(judged)]
    pairs = pairs[["adjective", "noun", "image_id"]].drop_duplicates()
    # Sorted, so that random choices do not depend on the order of the table.
    by_pair = pairs.sort_values("image_id").groupby(["adjective", "noun"])
    return by_pair["image_id"].agg(list).to_dict()


def draw_images(
    prompts: pd.DataFrame,
    accepted: Iterable[list[tuple[str, str]]],
    context: Context,
    split: str,
    name: str,
) -> pd.Series:
    """Draw, for each prompt, a judged image of ``split`` whose captions state an accepted pair;
    None if there is none.

    Args:
        accepted: pairs (adjective, noun) for each prompt.
        name: name of the random stream.
    """
    import pandas as pd

    images_of = stating_images(context, split)
    drawn = []
    for row, pairs in zip(prompts.itertuples(), accepted, strict=True):
        prompted_pair = split_pair(row.pair)
        # A photograph of a usual pair may show the prompted one, too.
        showing = set[str]()
        if prompted_pair not in pairs:
            showing.update(images_of.get(prompted_pair, ()))
        # An image of several accepted pairs counts once for each.
        stating = chain.from_iterable(images_of.get(pair, ()) for pair in pairs)
        images = [image_id for image_id in stating if image_id not in showing]
        keys = (row.split, row.image_id, row.caption_id, row.draw)
        stream = seeds.rng(context.seed, "generate", name, *keys)
        drawn.append(images[int(stream.integers(len(images)))] if images else None)
    return pd.Series(drawn, index=prompts.index, dtype="object")


def with_images(prompts: pd.DataFrame, image_ids: pd.Series, context: Context) -> Generated:
    """Give each prompt the photograph of an image; the summary counts how often photographs are
    used.
    """
    paths = context.tables["images"].dropna(subset="path").set_index("image_id")["path"]
    uses = image_ids.value_counts()
    most_uses = int(uses.max()) if len(uses) else 0
    summary = {"reuse": {"photographs": len(uses), "uses_at_most": most_uses}}
    return Generated(manifest(prompts, image_ids.map(paths), "skipped"), summary=summary)


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt a photograph that shows its noun, not its pair; nothing is copied."""
    import pandas as pd

    key = ["split", "image_id", "caption_id"]
    # Other adjectives of the prompt's noun that its captions do not state.
    variants = context.tables["variants"]
    adjectives = variants.groupby(key)["adjective"].agg(list)
    is_swapped = prompts["split"] == "test_swapped"
    drawn = prompts[~is_swapped].join(adjectives.rename("variants"), on=key)
    drawn = drawn.dropna(subset="variants")
    accepted = []
    for row in drawn.itertuples():
        _, noun = split_pair(row.pair)
        accepted.append([(adjective, noun) for adjective in row.variants])
    # The name of the random stream decides which photographs are drawn: keep it.
    image_ids = draw_images(drawn, accepted, context, "test_seen", "habit")
    # The photograph of the caption as it was before its swap.
    originals = prompts.loc[is_swapped, "image_id"]
    image_ids = pd.concat([image_ids, originals]).reindex(prompts.index)
    return with_images(prompts, image_ids, context)
