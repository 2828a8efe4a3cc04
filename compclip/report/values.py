"""Scores of entries by judge, their differences, and their means with intervals."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from compclip.report.measures import MEASURES
from compclip.report.rows import Row
from compclip.report.scored import Scored
from compclip.score.entries import ENTRY
from compclip.stats import crossed
from compclip.stats.estimates import INTERVAL_COLUMNS, estimate_values

ENTRY_COLUMNS = [*ENTRY, "cluster", "pair"]
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

    def __sub__(self, subtrahend: "Values") -> "Values":
        """Return the difference on common entries; the pairs are those of the first."""
        minuend_rows = self.entries.reset_index(names="a")
        subtrahend_rows = subtrahend.entries[ENTRY].reset_index(names="b")
        rows = minuend_rows.merge(subtrahend_rows, on=ENTRY)
        minuends = self.by_judge[rows["a"]]
        subtrahends = subtrahend.by_judge[rows["b"]]
        # The cluster and the pair of an entry are those of its prompt, so both sides agree.
        entries = rows[ENTRY_COLUMNS]
        return Values(entries, minuends - subtrahends)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def clusters(self) -> np.ndarray:
        return self.entries["cluster"].to_numpy()

    @property
    def pairs(self) -> np.ndarray:
        return self.entries["pair"].to_numpy()


def values_of(score: Scored, measure: str, *, with_image: bool = False) -> Values:
    """Return the values of the entries that have the score; ``with_image``: only of entries with an
    image.
    """
    return column_values(score, MEASURES[measure].column, with_image=with_image)


def column_values(score: Scored, column: str, *, with_image: bool = False) -> Values:
    """Return the values of the entries that have one in a column."""
    # All judges have the same entries with a value: those with variants, or all.
    has_value = score.entries[column].notna().to_numpy()
    if with_image:
        has_value = has_value & score.entries["similarity"].notna().to_numpy()
    columns = [table[column].to_numpy(float) for table in score.by_judge]
    values = np.stack(columns, axis=1)  # (n, J)
    entries = score.entries.loc[has_value, ENTRY_COLUMNS].reset_index(drop=True)
    return Values(entries, values[has_value])


def mean_columns(values: Values) -> Row:
    """Return the columns of a score: its value, its intervals, and the error from each source."""
    score = estimate_values(values.by_judge, values.clusters, values.pairs)
    columns = {name: getattr(score, name) for name in ("value", *INTERVAL_COLUMNS)}
    several_judges = values.by_judge.shape[1] > 1
    for source in ERROR_SOURCES:
        # One judge says nothing of how much judges differ.
        if source != "judges" or several_judges:
            columns[f"se_{source}"] = getattr(score.components, source) ** 0.5
    return columns


def balanced_r_precision(score: Scored) -> Row:
    """Return the columns of R-precision with the weights of the entries; its interval is for new
    pairs.
    """
    values = values_of(score, "r_precision")
    # Below 1 for entries of dominant pairs (``stats.balance``).
    weights = score.entries["weight"].to_numpy()
    # The cells are of clusters and pairs; judges add their own variance.
    means = values.by_judge.mean(axis=1)
    cells = crossed.make_cells(values.clusters, values.pairs, means, weights)
    by_judge = np.average(values.by_judge, axis=0, weights=weights)
    balanced = crossed.estimate(cells, by_judge)
    columns: Row = {"value": balanced.value}
    columns["new_pairs_low"] = balanced.low
    columns["new_pairs_high"] = balanced.high
    return columns
