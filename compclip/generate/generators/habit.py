"""Photographs as a memorizing model would draw: the prompt's noun with a usual adjective instead of
the prompt's.

A swapped prompt gets the photograph of the caption before the swap. Another prompt gets a judged
photograph of test_seen whose captions state the noun with one of the prompt's alternatives;
frequent ones are drawn more often. Their captions do not state the prompt's own pair: none states a
held-out pair, and those that state a seen one are not taken.
"""

from collections.abc import Iterable

import pandas as pd

from compclip.core import seeds
from compclip.core.heldout import split_pair
from compclip.generate.generator import Context, Generated, Settings, manifest

ABOUT = "photographs of the noun with a usual adjective"
TABLES = ("images", "pairs", "prompts", "variants")


def stating_images(context: Context, split: str) -> dict[tuple[str, str], list[str]]:
    """Return the judged images of a split whose captions state each pair (adjective, noun)."""
    images, pairs, prompts = (context.tables[name] for name in ("images", "pairs", "prompts"))
    with_file, prompted = images.dropna(subset="path"), prompts[prompts["split"] == split]
    judged = set(with_file["image_id"]) & set(prompted["image_id"])
    pairs = pairs[(pairs["relation"] != "disputed") & pairs["image_id"].isin(judged)]
    pairs = pairs[["adjective", "noun", "image_id"]].drop_duplicates().sort_values("image_id")
    return pairs.groupby(["adjective", "noun"])["image_id"].agg(list).to_dict()


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
    of_pair, drawn = stating_images(context, split), []
    for row, pairs in zip(prompts.itertuples(), accepted, strict=True):
        asked = split_pair(row.pair)
        # A photograph of a usual pair may show the asked one, too.
        showing = set() if asked in pairs else set(of_pair.get(asked, ()))
        images = [
            image for pair in pairs for image in of_pair.get(pair, ()) if image not in showing
        ]
        stream = seeds.rng(
            context.seed, "generate", name, row.split, row.image_id, row.caption_id, row.draw
        )
        drawn.append(images[int(stream.integers(len(images)))] if images else None)
    return pd.Series(drawn, index=prompts.index, dtype="object")


def with_images(prompts: pd.DataFrame, shown: pd.Series, context: Context) -> Generated:
    """Give each prompt the photograph of an image; the summary counts how often photographs are
    used.
    """
    paths = context.tables["images"].dropna(subset="path").set_index("image_id")["path"]
    uses = shown.value_counts()
    reuse = {"photographs": len(uses), "uses_at_most": int(uses.max()) if len(uses) else 0}
    return Generated(manifest(prompts, shown.map(paths), "skipped"), summary={"reuse": reuse})


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Give each prompt a photograph that shows its noun, not its pair; nothing is copied."""
    key = ["split", "image_id", "caption_id"]
    alternatives = (
        context.tables["variants"].groupby(key)["adjective"].agg(list).rename("alternatives")
    )
    drawn = (
        prompts[prompts["split"] != "test_swapped"]
        .join(alternatives, on=key)
        .dropna(subset="alternatives")
    )
    accepted = [
        [(a, split_pair(row.pair)[1]) for a in row.alternatives] for row in drawn.itertuples()
    ]
    shown = draw_images(drawn, accepted, context, "test_seen", "habit")
    before = prompts.loc[prompts["split"] == "test_swapped", "image_id"]
    return with_images(prompts, pd.concat([shown, before]).reindex(prompts.index), context)
