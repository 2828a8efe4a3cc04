"""Make entries and pools from the tables: the judged images, and the captions that they are
compared with.

A score covers one set of entries and one pool. A set's name is also the name of its file:
``test_seen``, ``test_unseen``, ``test_swapped``, and ``test_swapped.distractors-swapped`` for a
second pool.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.tables import CAPTION_KEY
from compclip.split.pools import pool_captions
from compclip.stats.r_precision import Entries, Pool, make_pool

# The columns that identify an entry within a split.
ENTRY = ["image_id", "caption_id", "draw"]
FAILED = [*ENTRY, "pair", "file_name", "status"]


@dataclass(frozen=True)
class EntrySet:
    """Entries of one split and their pool."""

    name: str
    split: str
    distractors: str
    entries: (
        pd.DataFrame
    )  # ENTRY, pair, text, path; sorted by ENTRY, without prompts whose image is missing
    pool: pd.DataFrame  # image_id, caption_id, text, a row per caption
    # ENTRY, pair, file_name, status of prompts whose image is missing or unreadable, which count as
    # wrong
    failed: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=FAILED))


def judged_entries(
    prompts: pd.DataFrame, manifest: pd.DataFrame, split: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the prompts of ``split`` with an image and its path, and those whose image is missing
    or unreadable.

    Prompts without a matching real image (status ``skipped``) are in neither.
    """
    asked = prompts[prompts["split"] == split]
    made = manifest[manifest["split"] == split].drop(columns="split")
    entries = asked.merge(made, on=ENTRY, how="left", validate="one_to_one").sort_values(
        ENTRY, ignore_index=True
    )
    entries["status"] = entries["status"].fillna("missing")
    failed = entries.loc[entries["status"].isin(("missing", "unreadable")), FAILED]
    kept = entries.loc[entries["status"] == "ok", [*ENTRY, "pair", "text", "path"]]
    return kept.reset_index(drop=True), failed.reset_index(drop=True)


def real_entries(prompts: pd.DataFrame, images: pd.DataFrame, split: str) -> pd.DataFrame:
    """Return the prompts of a split as entries, each with the real image that it describes."""
    paths = images.dropna(subset="path").set_index("image_id")["path"]
    rows = prompts[prompts["split"] == split].drop_duplicates(CAPTION_KEY)
    return (
        rows.assign(path=rows["image_id"].map(paths))
        .dropna(subset="path")
        .sort_values(ENTRY, ignore_index=True)
    )


def set_names(splits: Iterable[str], distractors: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, split and distractors of each set of these splits."""
    for split in splits:
        for kind in distractors if split == "test_swapped" else ["original"]:
            yield split if kind == "original" else f"{split}.distractors-{kind}", split, kind


def entry_sets(
    splits: Sequence[str],
    distractors: Sequence[str],
    *,
    prompts: pd.DataFrame,
    manifest: pd.DataFrame,
    captions: pd.DataFrame,
    judged: pd.DataFrame,
    swapped: pd.DataFrame,
) -> list[EntrySet]:
    """Return the entry sets of a generator that serves ``splits``, in order."""
    result = []
    for name, split, kind in set_names(splits, distractors):
        entries, failed = judged_entries(prompts, manifest, split)
        pool = pool_captions(captions, judged, swapped, split, kind)
        result.append(EntrySet(name, split, kind, entries, pool, failed))
    return result


@dataclass(frozen=True)
class Numbered:
    """A set in integers, as ``stats.r_precision`` takes it; ``texts`` are its distinct captions."""

    entries: Entries
    pool: Pool
    texts: list[str]


def number_set(entry_set: EntrySet, classes: pd.Series) -> Numbered:
    """Return a set with images, classes and distinct texts numbered in sorted order; UserError if
    its pool is empty.
    """
    has_pool = len(entry_set.pool) or not len(entry_set.entries)
    require(
        has_pool, entry_set.name, "no captions to draw distractors from", "add images to the split"
    )
    entries, pool = entry_set.entries, entry_set.pool
    text_index, texts = pd.concat([entries["text"], pool["text"]]).factorize(sort=True)
    class_index, _ = (
        pd.concat([entries["image_id"], pool["image_id"]]).map(classes).factorize(sort=True)
    )
    image_index, _ = pool["image_id"].factorize(sort=True)
    n = len(entries)
    keys = list(zip(*(entries[name].tolist() for name in ENTRY), strict=True))
    return Numbered(
        Entries(text_index[:n], class_index[:n], keys),
        make_pool(image_index, class_index[n:], text_index[n:]),
        list(texts),
    )


def pool_summary(pool: Pool, classes: np.ndarray, candidates: int) -> dict[str, Any]:
    """Return the size of the pool, and for how many entries (of ``classes``, (n,)) it has too few
    captions.
    """
    kinds, counts = np.unique(classes, return_counts=True)
    eligible = np.array([pool.eligible(int(of)) for of in kinds], dtype=int)
    return {
        "images": pool.images,
        "captions": len(pool.texts),
        "distinct": len(np.unique(pool.texts)),
        "eligible_least": int(eligible.min()) if len(eligible) else 0,
        "entries_with_fewer_than_candidates": int(counts[eligible < candidates - 1].sum()),
    }
