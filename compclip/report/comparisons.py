"""The rows of ``comparisons.csv``, one a difference a minus b by the trained judges, with original distractors.

``kind`` is what is compared, on the n entries that both sides have (of falls on unseen: the entries of unseen):

- ``generators``: the scores of two generators on a split.
- ``fall``: a generator's score on a split minus its score on seen. On swapped they are of the same captions, before and
  after the swap; on unseen of different images, unpaired.

``measure`` is a score of ``measures.COMPARED``. ``low`` and ``high`` cover images, pairs and judges, ``fixed_low`` and
``fixed_high`` only images, for these pairs and judges. ``p`` tests a difference against 0. Of each score, the family of
``primary`` comparisons is generators on unseen and on swapped: ``p_holm`` is adjusted within it by Holm's method. All
others are ``exploratory``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import numpy as np

from compclip.core.tables import TESTS
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.report.values import Values, values_of
from compclip.stats.estimates import compare_scores
from compclip.stats.paired import holm

COMPARISON_COLUMNS = [
    "dataset", "composition", "measure", "kind", "a", "b", "split", "difference", "low", "high", "fixed_low",
    "fixed_high", "p", "family", "p_holm", "n",
]  # fmt: skip
HELDOUT_SPLITS = ("test_unseen", "test_swapped")
Name = tuple[str, str]


def compare_values(a: Values, b: Values | None, limit: float = 1.0) -> Row:
    """Return the mean of ``a``, minus that of ``b`` if given, with its intervals; only ``n`` without entries.

    The interval over pairs is missing if there are too few to tell. ``limit`` is the greatest possible difference.
    """
    parts = [a] if b is None else [a, b]
    if not all(map(len, parts)):
        return {"n": len(a)}
    other: Row = {} if b is None else {"b_images": b.images, "b_pairs": b.pairs}
    minus = np.zeros_like(a.by_judge) if b is None else b.by_judge
    ends = (-limit, limit) if b is None else (1 - limit, 1.0)  # of a pair that was not sampled
    of = compare_scores(a.by_judge, minus, a.images, a.pairs, limit=limit, ends=ends, **other)
    return {
        "difference": of.value, "low": of.low, "high": of.high, "fixed_low": of.fixed_low,
        "fixed_high": of.fixed_high, "p": of.p, "n": len(a),
    }  # fmt: skip


def fall(values: Mapping[Name, Values], name: str, split: str) -> tuple[Values, Values | None] | None:
    """Return a generator's score on a split and, where they are not of the same captions, that on seen to subtract."""
    if (name, split) not in values or (name, "test_seen") not in values:
        return None
    own, seen = values[name, split], values[name, "test_seen"]
    return (own - seen, None) if split == "test_swapped" else (own, seen)


def _of_measure(values: Mapping[Name, Values]) -> Iterator[Row]:
    generators = list(dict.fromkeys(name for name, _ in values))
    for split in TESTS:
        for a, b in combinations([name for name in generators if (name, split) in values], 2):
            row = compare_values(values[a, split] - values[b, split], None)
            yield {"kind": "generators", "a": a, "b": b, "split": split, **row}
    for name, split in product(generators, HELDOUT_SPLITS):
        if of := fall(values, name, split):
            row = compare_values(*of)
            yield {"kind": "fall", "a": f"{name} {split}", "b": f"{name} test_seen", "split": split, **row}


def _primary(row: Row) -> bool:
    return row["kind"] == "generators" and row["split"] in HELDOUT_SPLITS


def comparisons(scores: Sequence[Scored]) -> list[Row]:
    """Return all comparisons of one composition: by measure, generators by split, falls."""
    main = {(score.generator, score.split): score for score in scores if score.main}
    about = {name: scores[0].summary[name] for name in ("dataset", "composition")}
    rows: list[Row] = []
    for measure in COMPARED:
        values = {name: values_of(score, measure) for name, score in main.items()}
        head = {**dict.fromkeys(COMPARISON_COLUMNS), **about, "measure": measure}
        found = [{**head, **row} for row in _of_measure(values)]
        family = [row for row in found if _primary(row) and row["p"] is not None]
        for row in found:
            row["family"] = "primary" if _primary(row) else "exploratory"
        for row, adjusted in zip(family, holm([row["p"] for row in family]), strict=True):
            row["p_holm"] = float(adjusted)
        rows += found
    return rows
