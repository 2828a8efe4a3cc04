"""Make entries and pools from the tables: the judged images, and the captions that they are
compared with.

A score covers one set of entries and one pool. A set's name is also the name of its file:
``test_seen``, ``test_unseen``, ``test_swapped``, and ``test_swapped.distractors-swapped`` for a
second pool.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.tables import CAPTION_KEY
from compclip.score.choices import Options, options_of
from compclip.split.pools import Pools
from compclip.stats.r_precision import Draws, Entries, Pool, make_pool, sample_distractors

# The columns that identify an entry within a split.
ENTRY = ["image_id", "caption_id", "draw"]
DERIVED = ["texts", "numbered", "options", "_draws"]
FAILED = [*ENTRY, "pair", "file_name", "status"]


@dataclass(frozen=True, eq=False)  # compared by identity, since tables have no equality
class EntrySet:
    """Entries of one split and their pool."""

    name: str
    split: str
    distractors: str  # original, swapped or published
    # ENTRY, pair, text, path; sorted by ENTRY, without prompts whose image is missing
    entries: pd.DataFrame
    pool: pd.DataFrame  # image_id, caption_id, text, a row per caption
    classes: pd.Series  # the class of each image, by image_id
    variants: pd.DataFrame  # columns of ``tables.VARIANTS``
    # ENTRY, pair, file_name, status of prompts whose image is missing or broken, which count as
    # wrong
    failed: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=FAILED))
    # by the number of candidates and the seed
    _draws: dict[tuple[int, int], Draws] = field(default_factory=dict, init=False, repr=False)

    # All judges ask for what follows, which does not depend on them.
    @cached_property
    def texts(self) -> set[str]:
        """The captions of the images and of the pool."""
        return {*self.entries["text"].tolist(), *self.pool["text"].tolist()}

    @cached_property
    def numbered(self) -> "Numbered":
        """The set in integers."""
        return number_set(self)

    @cached_property
    def options(self) -> Options:
        """The texts among which an adjective is chosen."""
        return options_of(self.entries, self.split, self.variants)

    def draws(self, candidates: int, seed: int) -> Draws:
        """Return the sampled distractors."""
        key = candidates, seed
        if key not in self._draws:
            numbered = self.numbered
            self._draws[key] = sample_distractors(numbered.entries, numbered.pool, *key)
        return self._draws[key]


def share_derived(sets: Iterable[EntrySet]) -> None:
    """Derive only once what is the same for sets, of the same tables, that differ only in paths."""
    distinct: list[EntrySet] = []
    columns = [*ENTRY, "pair", "text"]
    for entry_set in sets:
        entries = entry_set.entries[columns]
        for earlier in distinct:
            if entry_set.pool is earlier.pool and entries.equals(earlier.entries[columns]):
                # Where cached properties are.
                vars(entry_set).update({name: getattr(earlier, name) for name in DERIVED})
                break
        else:
            distinct.append(entry_set)


def judged_entries(
    prompts: pd.DataFrame, manifest: pd.DataFrame, split: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the prompts of ``split`` with an image and its path, and those whose image is missing
    or broken.

    Prompts without a matching real image (status ``skipped``) are in neither.
    """
    prompts = prompts[prompts["split"] == split]
    images = manifest[manifest["split"] == split].drop(columns="split")
    entries = prompts.merge(images, on=ENTRY, how="left", validate="one_to_one")
    entries = entries.sort_values(ENTRY, ignore_index=True)
    # A prompt that the manifest does not have was not drawn.
    status = entries["status"].fillna("missing")
    entries["status"] = status
    failed = entries.loc[status.isin(("missing", "broken")), FAILED]
    with_image = entries.loc[status == "ok", [*ENTRY, "pair", "text", "path"]]
    return with_image.reset_index(drop=True), failed.reset_index(drop=True)


def real_entries(prompts: pd.DataFrame, images: pd.DataFrame, split: str) -> pd.DataFrame:
    """Return the prompts of a split as entries, each with the real image that it describes."""
    paths = images.dropna(subset="path").set_index("image_id")["path"]
    # A caption has one real image, however many draws it is a prompt for.
    rows = prompts[prompts["split"] == split].drop_duplicates(CAPTION_KEY)
    row_paths = rows["image_id"].map(paths)
    rows = rows.assign(path=row_paths).dropna(subset="path")
    return rows.sort_values(ENTRY, ignore_index=True)


def set_names(splits: Iterable[str], distractors: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, split and distractors of each set of these splits."""
    for split in splits:
        # Only swapped captions have other distractors than original captions.
        kinds = distractors if split == "test_swapped" else ["original"]
        for kind in kinds:
            name = split
            if kind != "original":
                name = f"{split}.distractors-{kind}"
            yield name, split, kind


def entry_sets(
    splits: Sequence[str],
    distractors: Sequence[str],
    *,
    prompts: pd.DataFrame,
    manifest: pd.DataFrame,
    pools: Pools,
    classes: pd.Series,
    variants: pd.DataFrame,
) -> list[EntrySet]:
    """Return the entry sets of a generator that serves ``splits``, in order."""
    result = []
    for name, split, kind in set_names(splits, distractors):
        entries, failed = judged_entries(prompts, manifest, split)
        pool = pools.of_set(split, kind)
        result.append(EntrySet(name, split, kind, entries, pool, classes, variants, failed))
    return result


@dataclass(frozen=True, eq=False)  # compared by identity
class Numbered:
    """A set in integers, as ``stats.r_precision`` takes it; ``texts`` are its distinct captions."""

    entries: Entries
    pool: Pool
    texts: list[str]


def number_set(entry_set: EntrySet) -> Numbered:
    """Return a set with images, classes and distinct texts numbered in sorted order; UserError if
    its pool is empty.
    """
    entries = entry_set.entries
    pool = entry_set.pool
    has_pool = len(pool) or not len(entries)
    fault = "no captions to draw distractors from"
    require(has_pool, entry_set.name, fault, "add images to the split")
    # Entries and pool are numbered together, so that equal texts and classes have equal numbers.
    text_index, texts = pd.concat([entries["text"], pool["text"]]).factorize(sort=True)
    # Captions of an entry's class are not its distractors.
    image_ids = pd.concat([entries["image_id"], pool["image_id"]])
    class_index, _ = image_ids.map(entry_set.classes).factorize(sort=True)
    image_index, _ = pool["image_id"].factorize(sort=True)
    n = len(entries)
    # The seeds of an entry's draws depend on its key alone, not on the other entries.
    keys = list(entries[ENTRY].itertuples(index=False, name=None))
    numbered_entries = Entries(text_index[:n], class_index[:n], keys)
    numbered_pool = make_pool(image_index, class_index[n:], text_index[n:])
    return Numbered(numbered_entries, numbered_pool, list(texts))


def pool_summary(pool: Pool, classes: np.ndarray, candidates: int) -> dict[str, Any]:
    """Return the size of the pool, and for how many entries (of ``classes``, (n,)) it has too few
    captions.
    """
    # All entries of a class have the same eligible captions: those of other classes.
    class_numbers, entries = np.unique(classes, return_counts=True)
    eligible = np.array([pool.eligible(int(number)) for number in class_numbers], dtype=int)
    # One of the candidates is the entry's own caption.
    has_too_few = eligible < candidates - 1
    summary = {"images": pool.images, "captions": len(pool.texts)}
    summary["distinct"] = len(np.unique(pool.texts))
    summary["eligible_least"] = int(eligible.min()) if len(eligible) else 0
    summary["entries_with_fewer_than_candidates"] = int(entries[has_too_few].sum())
    return summary
