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

from compclip.core.errors import require
from compclip.core.rounding import rounded
from compclip.core.tables import CAPTION_KEY
from compclip.score import scores
from compclip.score.choices import (
    Choices,
    choose_adjectives,
    gathered,
    variants_of_entries,
    with_failed,
)
from compclip.score.entries import ENTRY, EntrySet, number_set
from compclip.score.scores import Rules, SetScores
from compclip.stats.r_precision import Blocks, Judged, Weights, blocks, expected_top1, weigh

Fact = tuple[str, str, str]
CaptionKey = tuple[str, int]
Facts = dict[CaptionKey, frozenset[Fact]]


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
        self.scenes, self.images, self.variants = scenes, images, variants
        stated: dict[CaptionKey, list[tuple[int, str, str, str]]] = defaultdict(list)
        # As objects, because iterating over Arrow strings is slow.
        rows = facts[[*CAPTION_KEY, "start", "part", "kind", "value"]].astype(object)
        for image, caption, *fact in rows.itertuples(index=False):
            stated[image, caption].append(tuple(fact))
        of_swapped, self.of_variants = (
            [
                _changed(stated[image, caption], changes)
                for image, caption, changes in rows.itertuples(index=False)
            ]
            for rows in (swapped[[*CAPTION_KEY, "changes"]], variants[[*CAPTION_KEY, "changes"]])
        )
        self.original: Facts = {
            caption: _changed(of_caption, ()) for caption, of_caption in stated.items()
        }
        keys = swapped[CAPTION_KEY].itertuples(index=False, name=None)
        self.swapped: Facts = dict(zip(keys, of_swapped, strict=True))


def _changed(
    stated: Sequence[tuple[int, str, str, str]], changes: Iterable[Mapping[str, Any]]
) -> frozenset[Fact]:
    """Return the facts of a changed caption: a change gives a new value to the facts at its
    start.
    """
    new = {int(change["start"]): str(change["new_adj"]) for change in changes}
    return frozenset((part, kind, new.get(start, value)) for start, part, kind, value in stated)


def oracle_choices(
    entry_set: EntrySet, oracle: Oracle, own: Facts, scenes: pd.DataFrame
) -> Choices:
    """Return the oracle's choice of adjective for each entry, from the scenes of the images."""
    entry, variant = variants_of_entries(entry_set.entries, entry_set.split, oracle.variants)
    captions = entry_set.entries[CAPTION_KEY].itertuples(index=False, name=None)
    asked = [own.get(caption, frozenset()) for caption in captions]
    true, stated, size = _counted(scenes, [*asked, *(oracle.of_variants[row] for row in variant)])
    n, counts = len(asked), gathered(true, stated)
    of_prompts = counts(np.arange(n), np.arange(n)) / size[:n]
    choices = choose_adjectives(
        of_prompts, counts(entry, np.arange(n, len(size))) / size[n:], entry
    )
    return with_failed(choices, entry_set.failed, entry_set.split, oracle.variants)


def scenes_of_entries(
    entry_set: EntrySet, images: pd.DataFrame, scenes: pd.DataFrame, drawn: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the scene of each entry's image, in entry order, with columns ``part:kind``.

    ``scenes`` are those of the real images; ``drawn`` those of the generator, by ENTRY and split.
    """
    entries = entry_set.entries
    real = images.dropna(subset="path").set_index("path")["image_id"]
    attributes = [name for name in scenes.columns if ":" in name]
    shown = entries["path"].map(real)
    if drawn is None or shown.notna().all():
        result = scenes.set_index("image_id")[attributes].reindex(shown)
    else:
        of_split = drawn[drawn["split"] == entry_set.split].set_index(ENTRY)
        result = of_split.reindex(pd.MultiIndex.from_frame(entries[ENTRY])).reindex(
            columns=attributes
        )
    unknown = entries["path"][result.isna().all(axis=1).to_numpy()].tolist()
    require(
        not unknown, entry_set.name, f"{', '.join(unknown[:1])}: unknown scene", "generate it again"
    )
    return result.reset_index(drop=True)


def _counted(
    scenes: pd.DataFrame, captions: Sequence[frozenset[Fact]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which facts are true of each scene (n, f), which each caption states (k, f), and how
    many it states (k,).

    Products are counts, which float32 represents exactly; the numbers of facts are at least 1.
    """
    facts = sorted(set().union(*captions))
    place = {fact: column for column, fact in enumerate(facts)}
    stated = np.zeros((len(captions), len(facts)), np.float32)
    rows = np.repeat(np.arange(len(captions)), [len(caption) for caption in captions])
    stated[rows, [place[fact] for caption in captions for fact in caption]] = 1
    true = np.zeros((len(scenes), len(facts)), np.float32)
    shown = {attribute: pd.factorize(scenes[attribute]) for attribute in scenes}
    for column, (part, kind, value) in enumerate(facts):
        codes, values = shown.get(f"{part}:{kind}", ((), ()))
        if value in values:
            true[:, column] = codes == values.get_loc(value)
    return true, stated, np.maximum(stated.sum(axis=1, dtype=np.float64), 1)


def fraction_true(
    scenes: pd.DataFrame, captions: Sequence[frozenset[Fact]]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that maps rows of ``scenes`` (n) to similarities with ``captions`` (k), of
    shape (rows, k).

    Each fraction is one division in float64, so equal fractions are equal floats; 0 without facts.
    """
    true, stated, size = _counted(scenes, captions)
    return lambda rows: true[rows] @ stated.T / size


@cache
def facts_text(stated: frozenset[Fact]) -> str:
    return "; ".join(" ".join(fact) for fact in sorted(stated))


def as_facts(table: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    """Return ``table`` with each caption's facts as its text."""
    captions = table[CAPTION_KEY].itertuples(index=False, name=None)
    texts = [facts_text(facts.get(caption, frozenset())) for caption in captions]
    return table.assign(text=pd.Series(texts, index=table.index, dtype=str))


def score_by_oracle(
    rules: Rules, entry_set: EntrySet, oracle: Oracle, drawn: pd.DataFrame | None
) -> SetScores:
    """Return the oracle's scores of one set."""
    own = oracle.swapped if entry_set.split == "test_swapped" else oracle.original
    other = oracle.swapped if entry_set.distractors == "swapped" else oracle.original
    entry_set = replace(
        entry_set, entries=as_facts(entry_set.entries, own), pool=as_facts(entry_set.pool, other)
    )
    numbered = number_set(entry_set, rules.classes)
    known = {facts_text(stated): stated for stated in [*own.values(), *other.values(), frozenset()]}
    captions = [known[text] for text in numbered.texts]
    n = len(captions)
    shown = scenes_of_entries(entry_set, oracle.images, oracle.scenes, drawn)
    similarities = fraction_true(shown, captions)
    choices = oracle_choices(entry_set, oracle, own, shown)
    # A distractor ties with a completely true own caption only if it is completely true as well.
    perfect = replace(numbered.entries, own=np.full(len(entry_set.entries), n))
    tied, weights = np.zeros(len(perfect.own)), Weights(numbered.pool, n + 1)

    def one_pass() -> Blocks:
        for rows, values in blocks(similarities, numbered.entries.classes):
            with_perfect = np.column_stack([values, np.ones(len(rows))])
            tied[rows] = weigh(with_perfect, perfect, rows, weights)[2]
            yield rows, values

    def truth(rows: np.ndarray, judged: Judged) -> dict[str, Any]:
        if not rows.any():
            return {"true_captions": None, "true_distractors": None, "ceiling": None}
        ceiling = expected_top1(np.zeros(len(tied)), tied, rules.candidates, rules.scoring.ties)
        return {
            "true_captions": rounded((judged.similarity[rows] == 1).mean()),
            "true_distractors": rounded(tied[rows].mean()),
            "ceiling": rounded(ceiling[rows].mean()),
        }

    return scores.score_set(rules, entry_set, numbered, one_pass(), n, choices, truth)


def score_oracle(
    sets: Sequence[EntrySet], rules: Rules, oracle: Oracle, drawn: pd.DataFrame | None
) -> dict[str, SetScores]:
    """Return the oracle's scores of a generator's sets, by name. ``drawn``: its scenes; None if it
    shows real images.

    The summaries add the fraction of facts that are true, and the ceiling that true distractors
    leave.
    """
    return {part.name: score_by_oracle(rules, part, oracle, drawn) for part in sets}
