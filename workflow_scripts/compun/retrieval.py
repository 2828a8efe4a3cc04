"""Rank a compound's image among all images, not only its two distractors (the paper's 12 %)."""

import numpy as np
import pandas as pd


def standings(similarities: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many images beat a compound's own, and how many others tie with it: (n,) each.

    similarities: (n, m), of n texts with m distinct images, since a duplicate would tie with itself; own: (n,) columns.
    """
    mine = np.take_along_axis(similarities, own[:, None], axis=1)
    return (similarities > mine).sum(axis=1), (similarities == mine).sum(axis=1) - 1


def found(table: pd.DataFrame, k: int = 1) -> np.ndarray:
    """Return whether the own image is among the first ``k`` (n,); as in the benchmark, a tie does not count."""
    return (table["above"] + table["tied"] < k).to_numpy()
