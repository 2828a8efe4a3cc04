"""Scores of entries by judge, their differences, and scores as fractions of the reference's.

A normalized score is (score - blind) / (score of the reference - blind). ``blind`` is the score of text alone: the
reference's blind control for R-precision, chance for adjective accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compclip.report.measures import MEASURES
from compclip.report.table import ENTRY, Row, Scored, columns_of
from compclip.stats import crossed
from compclip.stats.interval import Estimate


@dataclass(frozen=True)
class Values:
    """A score of entries, or a difference of scores.

    Args:
        entries: (n rows) what identifies them, and ``pair``.
        by_judge: (n, J).
    """

    entries: pd.DataFrame
    by_judge: np.ndarray

    def __sub__(self, other: "Values") -> "Values":
        """Return the difference on the entries that both have; the pairs are those of the first."""
        a, b = self.beside(other)
        return Values(a.entries, a.by_judge - b.by_judge)

    def beside(self, other: "Values") -> "tuple[Values, Values]":
        """Return both on the entries that both have; the pairs are those of the first."""
        rows = self.entries.reset_index(names="a").merge(other.entries[ENTRY].reset_index(names="b"), on=ENTRY)
        entries = rows[[*ENTRY, "pair"]]
        return Values(entries, self.by_judge[rows["a"]]), Values(entries, other.by_judge[rows["b"]])

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def images(self) -> np.ndarray:
        return self.entries["image_id"].to_numpy()

    @property
    def pairs(self) -> np.ndarray:
        return self.entries["pair"].to_numpy()

    @property
    def mean(self) -> float:
        return float(self.by_judge.mean())

    @property
    def of_judges(self) -> np.ndarray:
        """Return the mean by each judge, (J,)."""
        return self.by_judge.mean(axis=0)

    @property
    def means(self) -> np.ndarray:
        """Return the mean over judges of each entry, (n,)."""
        return self.by_judge.mean(axis=1)

    def cells(self) -> crossed.Cells:
        return crossed.cells(self.images, self.pairs, self.means, np.ones(len(self)))


def values_of(score: Scored, measure: str) -> Values:
    """Return the values of the entries that have the score."""
    column = MEASURES[measure].entries
    known = score.entries[column].notna().to_numpy()
    values = np.stack([table[column].to_numpy(float) for table in score.by_judge], axis=1)
    return Values(score.entries.loc[known, [*ENTRY, "pair"]].reset_index(drop=True), values[known])


def normalized(own: Values, reference: Values, blind: float) -> Estimate | None:
    """Return (own - blind) / (reference - blind) on the entries that both have, with its interval.

    The interval is that of a ratio by the delta method. None if the reference is not above ``blind``, beyond its own
    interval, by all judges; ``blind`` is the score of text alone.
    """
    a, b = own.beside(reference)
    cells = b.cells() if len(b) else None
    if cells is None or cells.clusters < 2:
        return None
    above = b.of_judges - blind
    error = crossed.variance(cells) + crossed.of_judges(above)
    low = crossed.difference(b.mean - blind, error).low
    if min(above) <= 0 or low is None or low <= 0:
        return None
    ratio = (a.mean - blind) / (b.mean - blind)
    # What each entry adds to the ratio's error.
    errors = Values(a.entries, (a.by_judge - ratio * b.by_judge - (1 - ratio) * blind) / (b.mean - blind))
    error = crossed.variance(errors.cells()) + crossed.of_judges((a.of_judges - blind) / above)
    return crossed.difference(ratio, error, np.inf)


def add_normalized(scores: Sequence[Scored], rows: Sequence[Row], reference: str | None) -> None:
    """Add the columns to rows of ``table.csv``, of the scores that are compared."""
    of_reference = {score.split: score for score in scores if score.main and score.generator == reference}
    for score, row in zip(scores, rows, strict=True):
        base = of_reference.get(score.split) if score.main else None
        for measure, of in MEASURES.items():
            value = None
            if base and (blind := base.about.get(of.blind)) is not None:
                value = normalized(values_of(score, measure), values_of(base, measure), blind)
            row |= columns_of(f"{measure}_normalized", value)
