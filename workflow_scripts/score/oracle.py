"""The oracle judge of the sketches: a caption's similarity is the share of its facts that are true of the scene.

It knows what was drawn, and so shows what the captions themselves allow: distractors are true of the image too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.score.entries import KEYS, EntrySet

Fact = tuple[str, str, str]
CaptionKey = tuple[str, int]


def facts_of_captions(facts: pd.DataFrame) -> dict[CaptionKey, frozenset[Fact]]:
    """(part, kind, value) of each caption that states any. facts: image_id, caption_id, part, kind, value."""
    result: dict[CaptionKey, set[Fact]] = defaultdict(set)
    columns = ["image_id", "caption_id", "part", "kind", "value"]
    for image, caption, *fact in facts[columns].itertuples(index=False):
        result[image, caption].add(tuple(fact))
    return {name: frozenset(found) for name, found in result.items()}


def facts_of_swapped(facts: pd.DataFrame, swapped: pd.DataFrame) -> dict[CaptionKey, frozenset[Fact]]:
    """As ``facts_of_captions``, of the swapped captions: each change gives a new value to the facts at its start.

    facts: also start, of the adjective in the original text. swapped: columns of ``tables.SWAPPED``.
    """
    new = {
        (image, caption, int(change["start"])): str(change["new_adj"])
        for image, caption, changes in swapped[["image_id", "caption_id", "changes"]].itertuples(index=False)
        for change in changes
    }
    ids = pd.MultiIndex.from_frame(swapped[["image_id", "caption_id"]])
    mine = facts[pd.MultiIndex.from_frame(facts[["image_id", "caption_id"]]).isin(ids)].copy()
    keys = zip(mine["image_id"], mine["caption_id"], mine["start"], strict=True)
    mine["value"] = [new.get(name, value) for name, value in zip(keys, mine["value"], strict=True)]
    return facts_of_captions(mine)


def scenes_of_entries(
    entry_set: EntrySet, images: pd.DataFrame, scenes: pd.DataFrame, drawn: pd.DataFrame | None
) -> pd.DataFrame:
    """The scene of each entry's image, in the order of the entries, columns ``part:kind``.

    A path of the real images shows the scene of that image (``scenes``, by image_id); any other one was drawn by
    the generator (``drawn``, by KEYS and split). Raises UserError where neither knows an image.
    """
    entries = entry_set.entries
    real = images.dropna(subset="path").set_index("path")["image_id"]
    attributes = [name for name in scenes.columns if ":" in name]
    by_image = scenes.set_index("image_id")[attributes]
    shown = entries["path"].map(real)
    if shown.notna().all():
        result = by_image.reindex(shown)
    else:
        if drawn is None:
            raise UserError(f"{entry_set.name}: {entries['path'][shown.isna()].iloc[0]}: no scene is known of it")
        mine = drawn[drawn["split"] == entry_set.split].set_index(KEYS)
        result = mine.reindex(pd.MultiIndex.from_frame(entries[KEYS])).reindex(columns=attributes)
    unknown = result.isna().all(axis=1).to_numpy()
    if unknown.any():
        raise UserError(f"{entry_set.name}: {entries['path'][unknown].iloc[0]}: no scene is known of it")
    return result.reset_index(drop=True)


def share_true(scenes: pd.DataFrame, captions: Sequence[frozenset[Fact]]) -> Callable[[np.ndarray], np.ndarray]:
    """Similarities of rows of ``scenes`` (n) with ``captions`` (k), for ``precision.judge``.

    The counts are whole numbers and each share one division, so equal shares are equal floats. A caption without
    facts states nothing: 0.
    """
    facts = sorted(set().union(*captions))
    number = {fact: column for column, fact in enumerate(facts)}
    stated = np.zeros((len(captions), len(facts)))
    for row, caption in enumerate(captions):
        stated[row, [number[fact] for fact in caption]] = 1
    true = np.zeros((len(scenes), len(facts)))
    for column, (part, kind, value) in enumerate(facts):
        if f"{part}:{kind}" in scenes:
            true[:, column] = (scenes[f"{part}:{kind}"] == value).fillna(False)
    size = np.maximum(stated.sum(axis=1), 1)
    return lambda rows: true[rows] @ stated.T / size
