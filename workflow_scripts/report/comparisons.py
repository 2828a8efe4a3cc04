"""The rows of ``comparisons.csv``, one a difference a minus b by the trained judge, with original distractors.

Generators are compared on the entries of a split that both have (n of them). ``G test_swapped`` is compared with
``G test_seen`` on the same captions; ``G test_unseen`` with ``G test_seen``, which have different images, unpaired (n:
entries of a). ``measure`` is a score of ``table.MEASURES``. ``low`` and ``high`` cover images and pairs, ``fixed_low``
and ``fixed_high`` only images, for these pairs and this judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import TESTS
from workflow_scripts.report.table import MEASURES, Row, Scored
from workflow_scripts.stats import crossed, interval

COLUMNS = [
    "dataset", "composition", "measure", "a", "b", "split", "difference", "low", "high", "fixed_low", "fixed_high", "p",
    "n",
]  # fmt: skip
# The columns that identify an entry.
ENTRY = ["image_id", "caption_id", "draw"]
NO_DIFFERENCE = dict.fromkeys(COLUMNS[6:-1])


def difference_stream(a: Scored, b: Scored) -> np.random.Generator:
    """Return the randomness of a difference: the same for all generators, so that they resample the same images."""
    about = a.summary
    return rng(about["seed"], "difference", about["dataset"], about["composition"], *a.place, *b.place)


def _entries(score: Scored, measure: str) -> pd.DataFrame:
    """Return the entries that have a score, with ``value``."""
    rows = score.entries
    return rows.assign(value=rows[MEASURES[measure]]).dropna(subset="value")


def _columns(difference: crossed.Difference | None, fixed: interval.Estimate, value: float) -> Row:
    """Return the columns of a difference, without an interval over pairs if there are too few to tell."""
    low, high, p = (difference.low, difference.high, difference.p) if difference else (None, None, None)
    return {
        "difference": value, "low": low, "high": high, "fixed_low": fixed.low, "fixed_high": fixed.high, "p": p,
    }  # fmt: skip


def paired(a: Scored, b: Scored, measure: str, resamples: int) -> tuple[Row, int]:
    """Return a minus b on the entries that both have, and their number; the pairs are those of a."""
    keys = [*ENTRY, "value"]
    both = _entries(a, measure).merge(_entries(b, measure)[keys], on=ENTRY, suffixes=("", "_b"))
    if both.empty:
        return NO_DIFFERENCE, 0
    images, values = both["image_id"].to_numpy(), both[["value", "value_b"]].to_numpy()
    fixed = interval.paired_differences(images, values, resamples, difference_stream(a, b))[0, 1]
    apart = (values[:, 0] - values[:, 1])[:, None]
    cells = crossed.cells(images, both["pair"].to_numpy(), apart, np.ones(len(both)))
    difference = None
    if cells.clusters > 1:
        draws = crossed.resampled_means(cells, resamples, difference_stream(a, b))[:, 0]
        difference = crossed.difference(fixed.value, draws, cells.clusters, None)
    return _columns(difference, fixed, fixed.value), len(both)


def unpaired(a: Scored, b: Scored, measure: str, resamples: int) -> tuple[Row, int]:
    """Return a minus b of different entries, and the number of those of a."""
    sides = [_entries(score, measure) for score in (a, b)]
    if any(side.empty for side in sides):
        return NO_DIFFERENCE, len(sides[0])
    of_sides = [(side["image_id"].to_numpy(), side["value"].to_numpy()) for side in sides]
    fixed = interval.unpaired_difference(*of_sides[0], *of_sides[1], resamples, difference_stream(a, b))
    cells = [
        crossed.cells(
            side["image_id"].to_numpy(), side["pair"].to_numpy(), side[["value"]].to_numpy(), np.ones(len(side))
        )
        for side in sides
    ]
    difference = None
    clusters = min(side.clusters for side in cells)
    if clusters > 1:
        stream = difference_stream(a, b)
        draws = [crossed.resampled_means(side, resamples, stream)[:, 0] for side in cells]
        difference = crossed.difference(fixed.value, draws[0] - draws[1], clusters, None)
    return _columns(difference, fixed, fixed.value), len(sides[0])


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
