"""Bootstrap intervals that resample images, since one image has several captions and draws.

A score is a mean over entries, weighted if entries are balanced. Entries of an image are resampled
together, with unchanged weights. Intervals are percentiles of the resampled means; a fraction of 0
or 1 has an exact interval.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

LEVEL = 0.95
# Random indices per block, 8 bytes each, to stay within the processor's cache.
INDICES = 1 << 17


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference of means, with the ends of its interval; None if there are fewer than
    two images.
    """

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{self.value:.3f}" + (
            f" [{self.low:.3f}, {self.high:.3f}]" if self.low is not None else ""
        )


def exact(value: float, trials: int) -> Estimate:
    """Return a fraction with the interval of Clopper and Pearson (1934)."""
    from scipy import stats  # slow to import, and seldom needed

    ends = stats.binomtest(round(value * trials), trials).proportion_ci(LEVEL, method="exact")
    return Estimate(value, float(ends.low), float(ends.high))


def number_names(names: ArrayLike) -> np.ndarray:
    """Return (n,): the number of each name in the order of the distinct names; -1 for None."""
    # Sorting only the distinct names is faster: a million entries may belong to a few thousand
    # images.
    index, distinct = pd.factorize(np.asarray(names, dtype=object))
    return np.append(np.argsort(np.argsort(distinct.astype(str))), -1)[index]


def resampled_sums(sums: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return (resamples, columns): sums (m, columns) over m images drawn with replacement in each
    resample.
    """
    m = len(sums)
    columns = np.ascontiguousarray(sums.T)
    result = np.empty((resamples, len(columns)))
    step = max(1, INDICES // m)
    for start in range(0, resamples, step):
        drawn = generator.integers(m, size=(min(step, resamples - start), m))
        for number, column in enumerate(columns):
            result[start : start + step, number] = column[drawn].sum(axis=1)
    return result


def mean(
    images: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
) -> Estimate:
    """Return the weighted mean of entries' values, (n,) with n >= 1, and its interval."""
    index = number_names(images)
    sums = np.stack([np.bincount(index, column) for column in (weights * values, weights)], axis=1)
    total, drawn = sums.sum(axis=0), resampled_sums(sums, resamples, generator)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, means = float(total[0] / total[1]), drawn[:, 0] / drawn[:, 1]
    if len(sums) < 2:
        return Estimate(value, None, None)
    # A resample of only images with weight 0 has no mean.
    low, high = np.nanquantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))


def share(
    images: np.ndarray,
    hits: np.ndarray,
    weights: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
) -> Estimate:
    """Return the weighted fraction of hits, (n,) with n >= 1, booleans or probabilities, and its
    interval.

    If all are 1 or all are 0, all resamples are equal; the interval is then exact, with as many
    trials as images.
    """
    hits = np.asarray(hits, np.float64)
    weighted = hits[weights > 0]
    if weighted[0] not in (0, 1) or (weighted != weighted[0]).any():
        return mean(images, hits, weights, resamples, generator)
    return exact(float(weighted[0]), len(np.unique(np.asarray(images)[weights > 0])))
