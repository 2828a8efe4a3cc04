"""Scores of entries by judge, and their differences."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from workflow_scripts.report.table import ENTRY, MEASURES, Scored
from workflow_scripts.stats import crossed


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
        return crossed.cells(self.images, self.entries["pair"].to_numpy(), self.means, np.ones(len(self)))


def values_of(score: Scored, measure: str) -> Values:
    """Return the values of the entries that have the score."""
    column = MEASURES[measure]
    known = score.entries[column].notna().to_numpy()
    values = np.stack([table[column].to_numpy(float) for table in score.by_judge], axis=1)
    return Values(score.entries.loc[known, [*ENTRY, "pair"]].reset_index(drop=True), values[known])
