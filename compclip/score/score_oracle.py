"""Score a generator's drawn scenes by the oracle: a caption's similarity is the fraction of its
facts that are true.

The oracle knows what was drawn. Its score is a ceiling set by the captions, since distractors may
be true of an image.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import rounded
from compclip.core.errors import require
from compclip.core.tables import CAPTION_KEY
from compclip.score import score_table
from compclip.score.choices import (
    Choices,
    choose_adjectives,
    variants_of_entries,
    with_failed,
)
from compclip.score.entries import ENTRY, EntrySet
from compclip.score.score_table import Rules, SetScores
from compclip.stats.r_precision import Blocks, Weights, blocks, expected_top1, weigh

Fact = tuple[str, str, str]  # part, kind and value
CaptionKey = tuple[str, int]
Facts = dict[CaptionKey, frozenset[Fact]]
# The start of the adjective in the caption, and the fact that it states.
Statement = tuple[int, str, str, str]


class FactTable:
    """The facts that captions state, each of which has a column."""

    def __init__(self, captions: Iterable[frozenset[Fact]]) -> None:
        # Sorted, because a set has another order in each process.
        self.facts = sorted(set[Fact]().union(*captions))
        self.column_of = {fact: column for column, fact in enumerate(self.facts)}

    def columns(self, captions: Sequence[frozenset[Fact]]) -> np.ndarray:
        """Return (k, most facts of a caption): the columns in ``true_facts`` of the facts of each
        caption, then that of no fact.
        """
        sizes = np.array([len(caption) for caption in captions], int)
        columns = np.full((len(captions), sizes.max(initial=1)), len(self.facts))
        is_fact = np.arange(columns.shape[1]) < sizes[:, None]
        columns[is_fact] = [self.column_of[fact] for caption in captions for fact in caption]
        return columns

    def true_facts(self, scenes: pd.DataFrame) -> np.ndarray:
        """Return (n, f + 1): 1 where a fact is true of a scene, else 0; the last column is 0.

        Sums and products of these are counts, which float32 represents exactly.
        """
        true = np.zeros((len(scenes), len(self.facts) + 1), np.float32)
        values_of = {attribute: pd.factorize(scenes[attribute]) for attribute in scenes}
        for column, (part, kind, value) in enumerate(self.facts):
            # A fact about an attribute that no scene has is false.
            codes, values = values_of.get(f"{part}:{kind}", ((), ()))
            if value in values:
                true[:, column] = codes == values.get_loc(value)
        return true


class Oracle:
    """The oracle's data, shared by all generators.

    Args:
        scenes: of the real images, with columns ``part:kind``.
        images, swapped, variants: columns of ``IMAGES``, ``SWAPPED`` and ``VARIANTS`` in
            ``tables``.
        facts: image_id, caption_id, part, kind, value and start of each fact that a caption states.
    """

    def __init__(
        self,
        scenes: pd.DataFrame,
        images: pd.DataFrame,
        facts: pd.DataFrame,
        swapped: pd.DataFrame,
        variants: pd.DataFrame,
    ) -> None:
        self.scenes = scenes
        self.images = images
        self.variants = variants
        stated: dict[CaptionKey, list[Statement]] = defaultdict(list)
        # As objects, because iterating over Arrow strings is slow.
        rows = facts[[*CAPTION_KEY, "start", "part", "kind", "value"]].astype(object)
        for image, caption, *statement in rows.itertuples(index=False):
            stated[image, caption].append(tuple(statement))
        of_swapped = _facts_of_changed(stated, swapped)
        swapped_keys = swapped[CAPTION_KEY].itertuples(index=False, name=None)
        self.swapped: Facts = dict(zip(swapped_keys, of_swapped, strict=True))
        self.of_variants = _facts_of_changed(stated, variants)
        self.original: Facts = {
            caption: _changed(statements, ()) for caption, statements in stated.items()
        }
        facts_of_texts = {*self.original.values(), *self.swapped.values(), *self.of_variants}
        self.table = FactTable(facts_of_texts)
        self.variant_columns = self.table.columns(self.of_variants)
        of_captions = {*self.original.values(), *self.swapped.values(), frozenset[Fact]()}
        self.facts_by_text = {facts_text(of_caption): of_caption for of_caption in of_captions}


def _facts_of_changed(
    stated: Mapping[CaptionKey, Sequence[Statement]], table: pd.DataFrame
) -> list[frozenset[Fact]]:
    """Return the facts of each changed caption of a table."""
    rows = table[[*CAPTION_KEY, "changes"]].itertuples(index=False)
    return [_changed(stated.get((image, caption), ()), changes) for image, caption, changes in rows]


def _changed(
    statements: Sequence[Statement], changes: Iterable[Mapping[str, Any]]
) -> frozenset[Fact]:
    """Return the facts of a changed caption: a change gives a new value to the facts at its
    start.
    """
    new_values = {int(change["start"]): str(change["new_adj"]) for change in changes}
    return frozenset(
        (part, kind, new_values.get(start, value)) for start, part, kind, value in statements
    )


def fraction_stated(true: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return (m,): which fraction of the facts of each caption, in ``columns`` (m, facts), is true
    of the scene in a row of ``true``; 0 without facts.
    """
    no_fact = true.shape[1] - 1
    sizes = np.count_nonzero(columns != no_fact, axis=1)
    counts = np.zeros(len(rows))
    # A fact of each caption at a time, since all would need much memory.
    for column in columns.T:
        counts += true[rows, column]
    return counts / np.maximum(sizes, 1)


def oracle_choices(
    entry_set: EntrySet, oracle: Oracle, of_prompts: np.ndarray, true: np.ndarray
) -> Choices:
    """Return the oracle's choice of adjective for each entry.

    Args:
        of_prompts: (n,) the fraction of the facts of each prompt that is true of its image.
        true: (n, f + 1) the facts that are true of the images.
    """
    split = entry_set.split
    # Both (m,), by variant.
    entry, variant = variants_of_entries(entry_set.entries, split, oracle.variants)
    of_variants = fraction_stated(true, entry, oracle.variant_columns[variant])
    choices = choose_adjectives(of_prompts, of_variants, entry)
    return with_failed(choices, entry_set.failed, split, oracle.variants)


def scenes_of_entries(
    entry_set: EntrySet, images: pd.DataFrame, scenes: pd.DataFrame, drawn: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the scene of each entry's image, in entry order, with columns ``part:kind``.

    ``scenes`` are those of the real images; ``drawn`` those of the generator, by ENTRY and split.
    """
    entries = entry_set.entries
    attributes = [name for name in scenes.columns if ":" in name]
    # A generator that shows real images has their paths in its manifest.
    image_by_path = images.dropna(subset="path").set_index("path")["image_id"]
    real_images = entries["path"].map(image_by_path)
    if drawn is None or real_images.notna().all():
        result = scenes.set_index("image_id")[attributes].reindex(real_images)
    else:
        in_split = drawn[drawn["split"] == entry_set.split].set_index(ENTRY)
        result = in_split.reindex(pd.MultiIndex.from_frame(entries[ENTRY]))
        # A generator may not record every attribute of the real scenes.
        result = result.reindex(columns=attributes)
    is_unknown = result.isna().all(axis=1).to_numpy()
    unknown = entries["path"][is_unknown].tolist()
    fault = f"{', '.join(unknown[:1])}: unknown scene"
    require(not unknown, entry_set.name, fault, "generate it again")
    return result.reset_index(drop=True)


def fraction_true(true: np.ndarray, columns: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that maps rows of ``true`` (n, f + 1) to similarities with captions, whose
    facts are in ``columns`` (k, facts), of shape (rows, k).

    Each fraction is one division in float32, so equal fractions are equal floats; 0 without facts.
    """
    k = len(columns)
    stated = np.zeros((true.shape[1], k), np.float32)
    stated[columns.T, np.arange(k)] = 1
    stated[-1] = 0  # no fact
    sizes = np.maximum(stated.sum(axis=0), 1)

    def similarities(rows: np.ndarray) -> np.ndarray:
        counts = true[rows] @ stated
        counts /= sizes
        return counts

    return similarities


@cache
def facts_text(stated: frozenset[Fact]) -> str:
    return "; ".join(" ".join(fact) for fact in sorted(stated))


def as_facts(table: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    """Return ``table`` with each caption's facts as its text."""
    # Lists, because iterating over a column of strings takes several times as long.
    keys = zip(*(table[name].tolist() for name in CAPTION_KEY), strict=True)
    texts = [facts_text(facts.get(key, frozenset())) for key in keys]
    return table.assign(text=pd.Series(texts, index=table.index, dtype=str))


def score_by_oracle(
    rules: Rules, entry_set: EntrySet, oracle: Oracle, drawn: pd.DataFrame | None
) -> SetScores:
    """Return the oracle's scores of one set."""
    entry_facts = oracle.swapped if entry_set.split == "test_swapped" else oracle.original
    pool_facts = oracle.swapped if entry_set.distractors == "swapped" else oracle.original
    # Captions are compared by their facts, so those that state the same are one text.
    entry_set = replace(
        entry_set,
        entries=as_facts(entry_set.entries, entry_facts),
        pool=as_facts(entry_set.pool, pool_facts),
    )
    numbered = entry_set.numbered
    # A distractor ties with a completely true own caption only if it is completely true as well.
    # That caption is added as the last text, and each entry takes it for its own.
    n = len(numbered.texts)
    captions = [oracle.facts_by_text[text] for text in numbered.texts]
    columns = oracle.table.columns([*captions, frozenset()])
    scenes = scenes_of_entries(entry_set, oracle.images, oracle.scenes, drawn)
    true = oracle.table.true_facts(scenes)
    own_columns = columns[numbered.entries.own]
    of_prompts = fraction_stated(true, np.arange(len(scenes)), own_columns)
    choices = oracle_choices(entry_set, oracle, of_prompts, true)
    # The oracle is scored like a judge whose similarity is this fraction.
    similarities = fraction_true(true, columns)
    perfect = replace(numbered.entries, own=np.full(len(entry_set.entries), n))
    weights = Weights(numbered.pool, n + 1)
    tied = np.zeros(len(entry_set.entries))

    def one_pass() -> Blocks:
        for rows, values in blocks(similarities, numbered.entries.classes):
            # All facts of the last text are true of any image. It is never a distractor, because
            # the pool does not have it.
            values[:, n] = 1
            _, _, tied[rows] = weigh(values, perfect, rows, weights)
            yield rows, values

    judged = rules.judge(entry_set, numbered.entries, one_pass(), weights)
    # float32 decides what is equal, but would change the last digits of some fractions.
    judged = replace(judged, similarity=of_prompts)

    def truth(rows: np.ndarray) -> dict[str, Any]:
        if not rows.any():
            return {"true_captions": None, "true_distractors": None, "ceiling": None}
        # No caption is truer than a completely true one.
        beaten = np.zeros(len(tied))
        ceiling = expected_top1(beaten, tied, rules.candidates, rules.scoring.ties)
        is_true = judged.similarity[rows] == 1
        return {
            "true_captions": rounded(is_true.mean()),
            "true_distractors": rounded(tied[rows].mean()),
            "ceiling": rounded(ceiling[rows].mean()),
        }

    return score_table.score_set(rules, entry_set, numbered, judged, choices, truth)


def score_oracle(
    sets: Sequence[EntrySet], rules: Rules, oracle: Oracle, drawn: pd.DataFrame | None
) -> dict[str, SetScores]:
    """Return the oracle's scores of a generator's sets, by name. ``drawn``: its scenes; None if it
    shows real images.

    The summaries add the fraction of facts that are true, and the ceiling that true distractors
    leave.
    """
    return {entry_set.name: score_by_oracle(rules, entry_set, oracle, drawn) for entry_set in sets}
