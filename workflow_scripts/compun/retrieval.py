"""Where a compound's image stands when all images are candidates, not just its two distractors (the paper's 12 %)."""

from __future__ import annotations

import numpy as np
import pandas as pd


def standings(similarities: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many images beat a compound's own, and how many others tie with it: (n,) each.

    similarities (n, m): of n texts with m different images; own (n,): the column of each text's image. An image that
    serves two compounds must be one column, or it would tie with itself.
    """
    mine = np.take_along_axis(similarities, own[:, None], axis=1)
    return (similarities > mine).sum(axis=1), (similarities == mine).sum(axis=1) - 1


def found(table: pd.DataFrame, k: int = 1) -> np.ndarray:
    """(n,) whether the own image is among the first ``k``; as in the benchmark, a tie is no win."""
    return (table["above"] + table["tied"] < k).to_numpy()
