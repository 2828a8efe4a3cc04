"""How a score goes with people's answers: Kendall's tau-b, Spearman's rho, the point-biserial r, over images.

A resample of images weights each entry with how often its image was drawn, so that thousands of resamples are a few
passes over a table of weights, in the order of the values: none sorts anew. The tests hold each against scipy on the
resample written out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Weights of 8 bytes that are in memory at once, with some tables of the same size made of them.
CELLS = 1 << 21


def signs(values: np.ndarray) -> np.ndarray:
    """(B, n, n) the sign of value i less value j, from (B, n); for few entries only."""
    return np.sign(values[:, :, None] - values[:, None, :])


def ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, n): for each i the weight of the entries below it less that of those above it.

    This is twice its rank but for a constant; entries of equal value have equal ranks. values: (n,), or (B, n) for
    few entries; weights: (B, n).
    """
    if values.ndim == 2:
        return (signs(values) @ weights[:, :, None])[:, :, 0]
    _, level = np.unique(values, return_inverse=True)
    totals = level_totals(level, weights)
    below = totals.cumsum(axis=1)
    return (2 * below - totals - below[:, -1:])[:, level]


def level_totals(level: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, k) the weights (B, n) of each of the levels 0 … k - 1, (n,); all of them must occur."""
    order = level.argsort(kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def concordance(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) the sum over all i and j of both weights times the signs of x_i - x_j and of y_i - y_j.

    x, y: (n,); weights: (B, n). Takes time in B n log k, k the fewer of the distinct values of x and of y.
    """
    x, y = (np.unique(values, return_inverse=True)[1] for values in (x, y))
    if x.max() < y.max():
        x, y = y, x
    order = np.lexsort((y, x))
    x, y, weights = x[order], y[order], weights[:, order]
    # Of i before j in this order, y_i and y_j first differ in one bit, the higher ones are alike: for each bit, among
    # those alike, j with 1 counts the i before it with 0 as concordant, and the i behind it as discordant.
    found = np.zeros(len(weights))
    for bit in range(int(y.max()).bit_length()):
        alike = (y >> bit + 1).argsort(kind="stable")
        starts = np.flatnonzero(np.diff(y[alike] >> bit + 1, prepend=-1))
        ones = (y[alike] >> bit & 1).astype(bool)
        part = weights[:, alike]
        zeros = np.where(ones, 0, part)
        before = zeros.cumsum(axis=1)
        of_zeros = np.add.reduceat(zeros, starts, axis=1)
        of_ones = np.add.reduceat(np.where(ones, part, 0), starts, axis=1)
        ended = of_zeros.cumsum(axis=1) - of_zeros  # zeros of the groups before
        found += 2 * ((part * before)[:, ones].sum(axis=1) - (of_ones * ended).sum(axis=1))
        found -= (of_zeros * of_ones).sum(axis=1)
    # Entries of equal x stand in the order of y, and were counted as concordant.
    cells = np.unique(x * (y.max() + 1) + y, return_inverse=True)[1]
    alike = (level_totals(x, weights) ** 2).sum(axis=1) - (level_totals(cells, weights) ** 2).sum(axis=1)
    return 2 * found - alike


def pearson(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) the weighted correlation; NaN where a side does not vary. x, y: (B, n) or (n,); weights: (B, n)."""
    total = weights.sum(axis=1, keepdims=True)
    x, y = (v - (weights * v).sum(axis=1, keepdims=True) / total for v in (x, y))
    spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Beside rounding, no spread is none.
        return np.where(spread > 1e-20, (weights * x * y).sum(axis=1) / np.sqrt(spread), np.nan)


def spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) as ``pearson``, of the ranks; entries of equal value share the mean of their ranks."""
    return pearson(ranks(x, weights), ranks(y, weights), weights)


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) tau-b: concordant less discordant pairs, over the pairs that are tied in neither. Shapes: ``pearson``."""
    if x.ndim == 2:
        of_x, of_y = signs(x), signs(y)
        both, in_x, in_y = (
            ((matrix @ weights[:, :, None])[:, :, 0] * weights).sum(axis=1)
            for matrix in (of_x * of_y, of_x * of_x, of_y * of_y)
        )
    else:
        both = concordance(x, y, weights)
        total = weights.sum(axis=1) ** 2
        in_x, in_y = (
            total - (level_totals(np.unique(v, return_inverse=True)[1], weights) ** 2).sum(axis=1) for v in (x, y)
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((in_x > 0) & (in_y > 0), both / np.sqrt(in_x * in_y), np.nan)


def image_weights(images: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """(resamples, n): how often each entry's image is drawn, of m draws among its m images."""
    return np.vstack([np.empty((0, len(images))), *weight_blocks(images, resamples, generator)])


def weight_blocks(images: np.ndarray, resamples: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """The rows of ``image_weights``, as many at a time as fit into ``CELLS``."""
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    chances = np.full(len(names), 1 / len(names))
    rows = max(1, CELLS // len(images))
    for start in range(0, resamples, rows):
        drawn = generator.multinomial(len(names), chances, size=min(rows, resamples - start))
        yield drawn[:, index].astype(np.float64)
