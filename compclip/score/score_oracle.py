"""Score a generator's drawn scenes by the oracle: a caption's similarity is the fraction of its
facts that are true.

The oracle knows what was drawn. Its score is a ceiling set by the captions, since distractors may
be true of an image.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    gathered,
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


@dataclass(frozen=True)
class _FactTable:
    """Which of f facts are true of scenes, and which captions state them.

    Products of these are counts, which float32 represents exactly.
    """

    true: np.ndarray  # (n, f) of each scene
    stated: np.ndarray  # (k, f) by each caption
    sizes: np.ndarray  # (k,) facts of each caption, at least 1

    @classmethod
    def count(cls, scenes: pd.DataFrame, captions: Sequence[frozenset[Fact]]) -> "_FactTable":
        facts = sorted(set().union(*captions))
        column_of = {fact: column for column, fact in enumerate(facts)}
        stated = np.zeros((len(captions), len(facts)), np.float32)
        rows = np.repeat(np.arange(len(captions)), [len(caption) for caption in captions])
        columns = [column_of[fact] for caption in captions for fact in caption]
        stated[rows, columns] = 1
        true = np.zeros((len(scenes), len(facts)), np.float32)
        values_of = {attribute: pd.factorize(scenes[attribute]) for attribute in scenes}
        for column, (part, kind, value) in enumerate(facts):
            # A fact about an attribute that no scene has is false.
            codes, values = values_of.get(f"{part}:{kind}", ((), ()))
            if value in values:
                true[:, column] = codes == values.get_loc(value)
        sizes = np.maximum(stated.sum(axis=1, dtype=np.float64), 1)
        return cls(true, stated, sizes)


def oracle_choices(
    entry_set: EntrySet, oracle: Oracle, own: Facts, scenes: pd.DataFrame
) -> Choices:
    """Return the oracle's choice of adjective for each entry, from the scenes of the images."""
    split = entry_set.split
    # Both (m,), by variant; the facts below are those of the n prompts, then of the m variants.
    entry, variant = variants_of_entries(entry_set.entries, split, oracle.variants)
    keys = entry_set.entries[CAPTION_KEY].itertuples(index=False, name=None)
    prompts = [own.get(key, frozenset()) for key in keys]
    variants = [oracle.of_variants[row] for row in variant]
    facts = _FactTable.count(scenes, [*prompts, *variants])
    n = len(prompts)
    # The product of an image's and a text's row counts the stated facts that are true.
    counts = gathered(facts.true, facts.stated)
    of_prompts = counts(np.arange(n), np.arange(n)) / facts.sizes[:n]
    of_variants = counts(entry, np.arange(n, len(facts.sizes))) / facts.sizes[n:]
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


def fraction_true(
    scenes: pd.DataFrame, captions: Sequence[frozenset[Fact]]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that maps rows of ``scenes`` (n) to similarities with ``captions`` (k), of
    shape (rows, k).

    Each fraction is one division in float64, so equal fractions are equal floats; 0 without facts.
    """
    facts = _FactTable.count(scenes, captions)
    return lambda rows: facts.true[rows] @ facts.stated.T / facts.sizes


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
    captions = [oracle.facts_by_text[text] for text in numbered.texts]
    scenes = scenes_of_entries(entry_set, oracle.images, oracle.scenes, drawn)
    choices = oracle_choices(entry_set, oracle, entry_facts, scenes)
    # A distractor ties with a completely true own caption only if it is completely true as well.
    # That caption is added as the last text, and each entry takes it for its own.
    n = len(captions)
    # The oracle is scored like a judge whose similarity is this fraction.
    similarities = fraction_true(scenes, [*captions, frozenset()])
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

    judged = rules.judge(entry_set, numbered, one_pass(), n + 1)

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
