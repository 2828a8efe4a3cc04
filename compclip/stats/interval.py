"""Bootstrap intervals that resample images, since one image has several captions and draws.

A score is a mean over entries, weighted if entries are balanced. Entries of an image are resampled
together, with unchanged weights. Intervals are percentiles of the resampled means; a fraction of 0
or 1 has the exact interval of Clopper and Pearson.
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
        if self.low is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def clopper_pearson(value: float, trials: int) -> Estimate:
    """Return a fraction with the interval of Clopper and Pearson (1934)."""
    from scipy import stats  # slow to import, and seldom needed

    successes = round(value * trials)
    test = stats.binomtest(successes, trials)
    interval = test.proportion_ci(LEVEL, method="exact")
    return Estimate(value, float(interval.low), float(interval.high))


def number_names(names: ArrayLike) -> np.ndarray:
    """Return (n,): the number of each name in the order of the distinct names; -1 for None."""
    # Sorting only the distinct names is faster: a million entries may belong to a few thousand
    # images.
    index, distinct = pd.factorize(np.asarray(names, dtype=object))
    # argsort twice gives the rank of each name.
    ranks = np.argsort(np.argsort(distinct.astype(str)))
    # ``index`` is -1 for None, and so finds the last number, -1.
    return np.append(ranks, -1)[index]


def resampled_sums(sums: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return (resamples, columns): sums (m, columns) over m images drawn with replacement in each
    resample.
    """
    m = len(sums)
    columns = np.ascontiguousarray(sums.T)
    result = np.empty((resamples, len(columns)))
    step = max(1, INDICES // m)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = generator.integers(m, size=(size, m))
        for number, column in enumerate(columns):
            sampled = column[drawn]
            result[start : start + size, number] = sampled.sum(axis=1)
    return result


def bootstrap_mean(
    images: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
) -> Estimate:
    """Return the weighted mean of entries' values, (n,) with n >= 1, and its interval."""
    index = number_names(images)
    image_values = np.bincount(index, weights * values)
    image_weights = np.bincount(index, weights)
    sums = np.stack([image_values, image_weights], axis=1)
    value_sum, weight_sum = sums.sum(axis=0)
    resampled = resampled_sums(sums, resamples, generator)
    value_sums, weight_sums = resampled.T
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(value_sum / weight_sum)
        means = value_sums / weight_sums
    if len(sums) < 2:
        return Estimate(value, None, None)
    # NaN: a resample of only images with weight 0 has no mean.
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.nanquantile(means, tails)
    return Estimate(value, float(low), float(high))


def bootstrap_fraction(
    images: np.ndarray,
    hits: np.ndarray,
    weights: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
) -> Estimate:
    """Return the weighted fraction of hits, (n,) with n >= 1, booleans or probabilities, and its
    interval.

    If all are 1 or all are 0, all resamples are equal; the interval is then that of Clopper and
    Pearson, with as many trials as images.
    """
    hits = np.asarray(hits, np.float64)
    is_counted = weights > 0
    counted = hits[is_counted]
    value = counted[0]
    if value not in (0, 1) or (counted != value).any():
        return bootstrap_mean(images, hits, weights, resamples, generator)
    trials = len(np.unique(np.asarray(images)[is_counted]))
    return clopper_pearson(float(value), trials)
