"""Scores of entries by judge, their differences, and their means with intervals."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from compclip.report.measures import MEASURES
from compclip.report.rows import Row
from compclip.report.table import Scored
from compclip.score.entries import ENTRY
from compclip.stats import crossed
from compclip.stats.estimates import ENDS, estimate_score

ERROR_SOURCES = ("pairs", "images", "judges", "residual")


@dataclass(frozen=True)
class Values:
    """A score of entries, or a difference of scores.

    Args:
        entries: (n rows) key columns, ``cluster`` (the class of the image, or the image) and
            ``pair``.
        by_judge: (n, J).
    """

    entries: pd.DataFrame
    by_judge: np.ndarray

    def __sub__(self, other: "Values") -> "Values":
        """Return the difference on common entries; the pairs are those of the first."""
        a, b = self.beside(other)
        return Values(a.entries, a.by_judge - b.by_judge)

    def beside(self, other: "Values") -> "tuple[Values, Values]":
        """Return both on common entries; the pairs are those of the first."""
        rows = self.entries.reset_index(names="a").merge(
            other.entries[ENTRY].reset_index(names="b"), on=ENTRY
        )
        entries = rows[[*ENTRY, "cluster", "pair"]]
        return Values(entries, self.by_judge[rows["a"]]), Values(entries, other.by_judge[rows["b"]])

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def images(self) -> np.ndarray:
        return self.entries["cluster"].to_numpy()

    @property
    def pairs(self) -> np.ndarray:
        return self.entries["pair"].to_numpy()


def values_of(score: Scored, measure: str, *, made: bool = False) -> Values:
    """Return the values of the entries that have the score; ``made``: only of entries with an
    image.
    """
    column = MEASURES[measure].entries
    known = score.entries[column].notna().to_numpy()
    if made:
        known = known & score.entries["similarity"].notna().to_numpy()
    values = np.stack([table[column].to_numpy(float) for table in score.by_judge], axis=1)
    return Values(
        score.entries.loc[known, [*ENTRY, "cluster", "pair"]].reset_index(drop=True), values[known]
    )


def mean_columns(values: Values) -> Row:
    """Return the columns of a score: its value, its intervals, and the error from each source."""
    score = estimate_score(values.by_judge, values.images, values.pairs)
    sources = [
        source for source in ERROR_SOURCES if source != "judges" or values.by_judge.shape[1] > 1
    ]
    errors = {f"se_{source}": getattr(score.components, source) ** 0.5 for source in sources}
    return {name: getattr(score, name) for name in ("value", *ENDS)} | errors


def balanced_r_precision(score: Scored) -> Row:
    """Return the columns of R-precision with the weights of the entries; its interval is for new
    pairs.
    """
    values, weights = values_of(score, "r_precision"), score.entries["weight"].to_numpy()
    cells = crossed.cells(values.images, values.pairs, values.by_judge.mean(axis=1), weights)
    balanced = crossed.estimate(cells, np.average(values.by_judge, axis=0, weights=weights))
    return {"value": balanced.value, "new_pairs_low": balanced.low, "new_pairs_high": balanced.high}
