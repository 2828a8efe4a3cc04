"""Bootstrap intervals that resample images, since one image has many captions and draws.

A score is a mean over entries, weighted where entries are balanced. All entries of an image come and go together;
their weights stay as they were. Intervals are percentiles of the resampled means; a share of all or of none has an
exact one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

LEVEL = 0.95
# Random indices held at once, 8 bytes each.
HELD = 1 << 22


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of means, with the ends of its interval; None where an image alone does not tell them."""

    value: float
    low: float | None
    high: float | None


def sums_by_image(images: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """(m, len(columns)) sums of entries' columns (n,) over each image, in the order of the images' names."""
    # Only the distinct names are sorted: a million entries are of a few thousand images.
    index, names = pd.factorize(np.asarray(images, dtype=object))
    index = np.argsort(np.argsort(names.astype(str)))[index]
    return np.stack([np.bincount(index, weights=np.asarray(column, np.float64)) for column in columns], axis=1)


def resampled_sums(sums: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """(resamples, columns): sums (m, columns) added over m images drawn with replacement, each time anew."""
    m = len(sums)
    columns = np.ascontiguousarray(sums.T)
    result = np.empty((resamples, len(columns)))
    step = max(1, HELD // m)
    for start in range(0, resamples, step):
        drawn = generator.integers(m, size=(min(step, resamples - start), m))
        for number, column in enumerate(columns):
            result[start : start + step, number] = column[drawn].sum(axis=1)
    return result


def _ratios(sums: np.ndarray) -> np.ndarray:
    """Means from columns (value, weight, value, weight, ...), by row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[:, 0::2] / sums[:, 1::2]


def _estimate(value: float, draws: np.ndarray, images: int) -> Estimate:
    if images < 2:
        return Estimate(value, None, None)
    # A resample may hold only images of weight 0: it has no mean.
    low, high = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))


def mean(
    images: np.ndarray, values: np.ndarray, weights: np.ndarray, resamples: int, generator: np.random.Generator
) -> Estimate:
    """The weighted mean of entries' values (n >= 1) and its interval."""
    sums = sums_by_image(images, weights * values, weights)
    draws = _ratios(resampled_sums(sums, resamples, generator))[:, 0]
    return _estimate(float(_ratios(sums.sum(axis=0, keepdims=True))[0, 0]), draws, len(sums))


def share(
    images: np.ndarray, hits: np.ndarray, weights: np.ndarray, resamples: int, generator: np.random.Generator
) -> Estimate:
    """As ``mean``, of entries' hits (n >= 1), which are truths or chances.

    Where all are sure, or none is possible, each resample is the same: the interval then is that of Clopper and
    Pearson, over as many trials as there are images.
    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
    (Biometrika, 1934).
    """
    hits = np.asarray(hits, np.float64)
    own = hits[weights > 0]
    trials = len(np.unique(np.asarray(images)[weights > 0]))
    if own[0] not in (0, 1) or (own != own[0]).any():
        return mean(images, hits, weights, resamples, generator)
    from scipy import stats  # slow to import, and few intervals need it

    ends = stats.binomtest(trials if own[0] else 0, trials).proportion_ci(LEVEL, method="exact")
    return Estimate(float(own[0]), float(ends.low), float(ends.high))


def paired_differences(
    images: np.ndarray, values: np.ndarray, resamples: int, generator: np.random.Generator
) -> dict[tuple[int, int], Estimate]:
    """mean(column i) - mean(column j) for all i < j of ``values`` (n >= 1, k): the same entries, of which all columns
    are resampled together, once.
    """
    sums = sums_by_image(images, *values.T, np.ones(len(images)))
    draws = resampled_sums(sums, resamples, generator)
    means = np.ascontiguousarray((draws[:, :-1] / draws[:, -1:]).T)
    whole = values.mean(axis=0)
    return {
        (i, j): _estimate(float(whole[i] - whole[j]), means[i] - means[j], len(sums))
        for i, j in combinations(range(values.shape[1]), 2)
    }


def unpaired_difference(
    a_images: np.ndarray,
    a: np.ndarray,
    b_images: np.ndarray,
    b: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
) -> Estimate:
    """mean(a) - mean(b) of different entries (n >= 1 each), images of either resampled by themselves."""
    parts = [sums_by_image(a_images, a, np.ones(len(a))), sums_by_image(b_images, b, np.ones(len(b)))]
    draws = [_ratios(resampled_sums(part, resamples, generator))[:, 0] for part in parts]
    value = float(np.mean(a) - np.mean(b))
    return _estimate(value, draws[0] - draws[1], min(map(len, parts)))
