"""The rows of ``comparisons.csv``, one a difference a minus b by the trained judges, with original distractors.

Generators are compared on the entries of a split that both have (n of them). ``G test_swapped`` is compared with
``G test_seen`` on the same captions; ``G test_unseen`` with ``G test_seen``, which have different images, unpaired (n:
entries of a). ``measure`` is a score of ``table.MEASURES``. ``low`` and ``high`` cover images, pairs and
judges, ``fixed_low`` and ``fixed_high`` only images, for these pairs and judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import TESTS
from workflow_scripts.report.table import ENTRY, MEASURES, Row, Scored
from workflow_scripts.stats import crossed, interval

COLUMNS = [
    "dataset", "composition", "measure", "a", "b", "split", "difference", "low", "high", "fixed_low", "fixed_high", "p",
    "n",
]  # fmt: skip
NO_DIFFERENCE = dict.fromkeys(COLUMNS[6:-1])


def difference_stream(a: Scored, b: Scored) -> np.random.Generator:
    """Return the randomness of a difference: the same for all generators, so that they resample the same images."""
    about = a.summary
    return rng(about["seed"], "difference", about["dataset"], about["composition"], *a.place, *b.place)


def _entries(score: Scored, measure: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the entries that have a score, and their scores by judge, (n, J)."""
    column = MEASURES[measure]
    known = score.entries[column].notna().to_numpy()
    values = np.stack([table[column].to_numpy() for table in score.by_judge], axis=1)
    return score.entries.loc[known, [*ENTRY, "pair"]].reset_index(drop=True), values[known]


def _by_judge(values: np.ndarray) -> np.ndarray | None:
    """Return the mean by judge, (J,), of values (n, J); None if there is one judge."""
    return values.mean(axis=0) if values.shape[1] > 1 else None


def _cells(entries: pd.DataFrame, values: np.ndarray) -> crossed.Cells:
    """Return the cells of the means over judges of values (n, J)."""
    mean = values.mean(axis=1, keepdims=True)
    return crossed.cells(entries["image_id"].to_numpy(), entries["pair"].to_numpy(), mean, np.ones(len(entries)))


def _columns(difference: crossed.Difference | None, fixed: interval.Estimate, value: float) -> Row:
    """Return the columns of a difference, without an interval over pairs if there are too few to tell."""
    low, high, p = (difference.low, difference.high, difference.p) if difference else (None, None, None)
    return {
        "difference": value, "low": low, "high": high, "fixed_low": fixed.low, "fixed_high": fixed.high, "p": p,
    }  # fmt: skip


def paired(a: Scored, b: Scored, measure: str, resamples: int) -> tuple[Row, int]:
    """Return a minus b on the entries that both have, and their number; the pairs are those of a."""
    (of_a, values_a), (of_b, values_b) = _entries(a, measure), _entries(b, measure)
    both = of_a.reset_index(names="a").merge(of_b[ENTRY].reset_index(names="b"), on=ENTRY)
    if both.empty:
        return NO_DIFFERENCE, 0
    sides = values_a[both["a"]], values_b[both["b"]]
    means = np.stack([side.mean(axis=1) for side in sides], axis=1)
    fixed = interval.paired_differences(both["image_id"].to_numpy(), means, resamples, difference_stream(a, b))[0, 1]
    apart = sides[0] - sides[1]
    cells, difference = _cells(both, apart), None
    if cells.clusters > 1:
        draws = crossed.resampled_means(cells, resamples, difference_stream(a, b))[:, 0]
        difference = crossed.difference(fixed.value, draws, cells.clusters, _by_judge(apart))
    return _columns(difference, fixed, fixed.value), len(both)


def unpaired(a: Scored, b: Scored, measure: str, resamples: int) -> tuple[Row, int]:
    """Return a minus b of different entries, and the number of those of a."""
    (of_a, values_a), (of_b, values_b) = _entries(a, measure), _entries(b, measure)
    if of_a.empty or of_b.empty:
        return NO_DIFFERENCE, len(of_a)
    sides = (of_a["image_id"].to_numpy(), values_a.mean(axis=1)), (of_b["image_id"].to_numpy(), values_b.mean(axis=1))
    fixed = interval.unpaired_difference(*sides[0], *sides[1], resamples, difference_stream(a, b))
    cells = _cells(of_a, values_a), _cells(of_b, values_b)
    clusters, difference = min(side.clusters for side in cells), None
    if clusters > 1:
        stream = difference_stream(a, b)
        draws = [crossed.resampled_means(side, resamples, stream)[:, 0] for side in cells]
        means = [_by_judge(values) for values in (values_a, values_b)]
        by_judge = None if means[0] is None or means[1] is None else means[0] - means[1]
        difference = crossed.difference(fixed.value, draws[0] - draws[1], clusters, by_judge)
    return _columns(difference, fixed, fixed.value), len(of_a)


def comparisons(scores: Sequence[Scored], resamples: int) -> list[Row]:
    """Return all comparisons of one composition: by measure, generators by split, then their splits with seen."""
    main = {(score.generator, score.split): score for score in scores if score.main}
    generators = list(dict.fromkeys(generator for generator, _ in main))
    rows: list[Row] = []
    for measure in MEASURES:

        def add(a: Scored, names: tuple[str, str], result: tuple[Row, int], measure: str = measure) -> None:
            about = {name: a.summary[name] for name in ("dataset", "composition")}
            named = {"measure": measure, "a": names[0], "b": names[1], "split": a.split}
            rows.append({**about, **named, **result[0], "n": result[1]})

        for split in TESTS:
            serving = [name for name in generators if (name, split) in main]
            for one, other in combinations(serving, 2):
                a, b = main[one, split], main[other, split]
                add(a, (one, other), paired(a, b, measure, resamples))
        for name in generators:
            seen = main.get((name, "test_seen"))
            for split in ("test_swapped", "test_unseen"):
                score = main.get((name, split))
                if seen is None or score is None:
                    continue
                compare = paired if split == "test_swapped" else unpaired
                add(score, (f"{name} {split}", f"{name} test_seen"), compare(score, seen, measure, resamples))
    return rows
