"""Correlations of a score with people's answers: Kendall's tau-b, Spearman's rho and Pearson's r.

A bootstrap over images is a matrix of weights: a row a resample, in it how often each entry's image was drawn.
"""

import warnings
from collections.abc import Iterator

import numpy as np
from scipy import stats

# Weights held at once, 8 bytes each.
CELLS = 1 << 21


def _written_out(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B, m): each resample's values, repeated by their weights; shorter resamples end with NaN."""
    counts = weights.astype(int)
    lengths = counts.sum(axis=1)
    rows = np.full((len(counts), lengths.max(initial=0)), np.nan)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.repeat(np.broadcast_to(values, counts.shape), counts.ravel())
    return rows


def pearson(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Pearson's r of each resample; NaN where a side does not vary.

    Args:
        x, y: (n,), or (B, n) where each resample has values of its own.
        weights: (B, n).
    """
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (v - (weights * v).sum(axis=1, keepdims=True) / total for v in (x, y))
        spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
        # Rounding leaves a spread above zero where the values are equal.
        return np.where(spread > 1e-20, (weights * x * y).sum(axis=1) / np.sqrt(spread), np.nan)


def spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Spearman's rho of each resample, ties with mean ranks; weights are whole numbers (see pearson)."""
    rank_x, rank_y = (stats.rankdata(_written_out(v, weights), axis=1, nan_policy="omit") for v in (x, y))
    return pearson(np.nan_to_num(rank_x), np.nan_to_num(rank_y), (~np.isnan(rank_x)).astype(float))


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Kendall's tau-b of each resample; weights are whole numbers (see pearson)."""
    with warnings.catch_warnings():
        # A resample with fewer than two entries has no correlation; scipy warns and returns NaN.
        warnings.simplefilter("ignore")
        tau = stats.kendalltau(_written_out(x, weights), _written_out(y, weights), axis=1, nan_policy="omit")
    return np.asarray(tau.statistic)


def weight_blocks(images: np.ndarray, resamples: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield (rows, n), at most ``CELLS`` at a time: how often each entry's image is drawn, with replacement.

    A row is a resample, with as many draws as there are images.
    """
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    rows = max(1, CELLS // len(images))
    for start in range(0, resamples, rows):
        drawn = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), min(rows, resamples - start))
        yield drawn[:, index].astype(np.float64)
