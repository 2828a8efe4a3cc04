"""The rows of ``comparisons.csv``: differences a minus b by the trained judges, with original
distractors.

``kind`` tells which n entries of a split are compared:

- ``generators``: the scores of two generators on a split. A missing image counts as wrong.
- ``both_made``: the same on entries for which both have an image, if one of them lacks some.

``measure`` is a score of ``measures.COMPARED``. ``same_pairs_low`` and ``same_pairs_high`` cover
images, for the same pairs and judges; ``new_pairs_low`` and ``new_pairs_high`` cover images, pairs
and judges. ``p`` tests a difference against 0. For each score, the family of ``primary``
comparisons is ``generators`` on unseen and swapped: ``p_holm`` is adjusted within it by Holm's
method. All other comparisons are ``exploratory``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from compclip.core.tables import TESTS
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.report.values import Values, values_of
from compclip.stats.estimates import ENDS, compare_scores
from compclip.stats.paired import holm

COMPARISON_COLUMNS = [
    "dataset",
    "composition",
    "measure",
    "kind",
    "a",
    "b",
    "split",
    "difference",
    *ENDS,
    "p",
    "family",
    "p_holm",
    "n",
]
HELDOUT_SPLITS = ("test_unseen", "test_swapped")
Name = tuple[str, str]


def compare_values(a: Values) -> Row:
    """Return the mean difference with its intervals, or only ``n`` if there are no entries.

    The interval over pairs is missing if there are too few pairs.
    """
    if not len(a):
        return {"n": 0}
    of = compare_scores(a.by_judge, np.zeros_like(a.by_judge), a.images, a.pairs, ends=(-1.0, 1.0))
    ends = {name: getattr(of, name) for name in (*ENDS, "p")}
    return {"difference": of.value, **ends, "n": len(a)}


def _of_measure(values: Mapping[Name, Values], made: Mapping[Name, Values]) -> Iterator[Row]:
    generators = list(dict.fromkeys(name for name, _ in values))
    for split in TESTS:
        for a, b in combinations([name for name in generators if (name, split) in values], 2):
            sides = {"generators": (values[a, split], values[b, split])}
            if any(len(made[name, split]) < len(values[name, split]) for name in (a, b)):
                sides["both_made"] = made[a, split], made[b, split]
            for kind, (of_a, of_b) in sides.items():
                family = (
                    "primary" if kind == "generators" and split in HELDOUT_SPLITS else "exploratory"
                )
                about = {"kind": kind, "a": a, "b": b, "split": split, "family": family}
                yield about | compare_values(of_a - of_b)


def comparisons(scores: Sequence[Scored]) -> list[Row]:
    """Return all comparisons of one composition, by measure and split."""
    main = {(score.generator, score.split): score for score in scores if score.main}
    about = {name: scores[0].summary[name] for name in ("dataset", "composition")}
    rows: list[Row] = []
    for measure in COMPARED:
        values, made = (
            {name: values_of(score, measure, made=made) for name, score in main.items()}
            for made in (False, True)
        )
        head = {**dict.fromkeys(COMPARISON_COLUMNS), **about, "measure": measure}
        found = [{**head, **row} for row in _of_measure(values, made)]
        family = [row for row in found if row["family"] == "primary" and row["p"] is not None]
        for row, adjusted in zip(family, holm([row["p"] for row in family]), strict=True):
            row["p_holm"] = float(adjusted)
        rows += found
    return rows
