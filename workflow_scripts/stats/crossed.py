"""Intervals over everything that was sampled: images, held-out pairs and judges.

Images and pairs are crossed: an image has entries of several pairs, and a pair entries of many images. The pigeonhole
bootstrap (Owen 2007, Annals of Applied Statistics 1:386) resamples both independently and multiplies their counts. Its
variance is conservative for what neither explains. Judges are too few to resample: the variance of their mean is
s² / J. The sum of both variances has the degrees of freedom of Satterthwaite (1946), with pairs - 1 and J - 1; a
fraction gets the interval of Wilson (1927) with as many trials as a binomial of that variance would have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from workflow_scripts.stats.interval import LEVEL, Estimate

# Counts in memory at once, 8 bytes each.
COUNTS = 1 << 22


@dataclass(frozen=True)
class Cells:
    """Sums of entries over each combination of an image and a pair that occurs.

    Args:
        image: (c,) numbers of images, from 0.
        pair: (c,) numbers of pairs, from 0; -1 for entries without a pair, whose images alone are resampled.
        weight: (c,) sums of weights.
        values: (c, k) sums of weighted values.
    """

    image: np.ndarray
    pair: np.ndarray
    weight: np.ndarray
    values: np.ndarray

    @property
    def images(self) -> int:
        return int(self.image.max()) + 1

    @property
    def pairs(self) -> int:
        return int(self.pair.max()) + 1

    @property
    def clusters(self) -> int:
        """Return how many of the scarcest thing are resampled: the pairs, or the images if no entry has a pair."""
        return min(self.images, self.pairs or self.images)

    @property
    def means(self) -> np.ndarray:
        """Return the weighted means, (k,)."""
        return self.values.sum(axis=0) / self.weight.sum()


@dataclass(frozen=True)
class Components:
    """What the variance of a score consists of, each a variance of the mean; residual: of images in pairs."""

    pairs: float
    images: float
    judges: float
    residual: float


@dataclass(frozen=True)
class Difference(Estimate):
    """A difference with its p-value against 0."""

    p: float


def cells(images: np.ndarray, pairs: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Cells:
    """Return the cells of entries, in the order of the names of images and pairs.

    Args:
        images: (n,) the image of each entry; entries of weight 0 are skipped.
        pairs: (n,) the pair of each entry, or None.
        values: (n, k).
        weights: (n,).
    """
    kept = weights > 0
    index = []
    for names in (images, pairs):
        numbers, distinct = pd.factorize(np.asarray(names, dtype=object)[kept])
        order = np.append(np.argsort(np.argsort(distinct.astype(str))), -1)
        index.append(order[numbers])
    width = index[1].max() + 2
    combined, cell = np.unique(index[0] * width + index[1] + 1, return_inverse=True)
    sums = [np.bincount(cell, weights=column) for column in (weights[kept], *(values[kept].T * weights[kept]))]
    image, pair = np.divmod(combined, width)
    return Cells(image, pair - 1, sums[0], np.stack(sums[1:], axis=1))


def _counts(size: int, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return (resamples, size): how often each of ``size`` things is drawn, with replacement, in each resample."""
    drawn = generator.integers(size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * resamples).reshape(resamples, size)


def resampled_means(of: Cells, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return (resamples, k): the means with images and pairs resampled; NaN where all weights are 0."""
    result = np.empty((resamples, of.values.shape[1]))
    step = max(1, COUNTS // (of.images + len(of.weight)))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        counts = _counts(of.images, size, generator)[:, of.image]
        if of.pairs:
            of_pairs = np.column_stack([_counts(of.pairs, size, generator), np.ones(size, np.int64)])
            counts *= of_pairs[:, of.pair]
        with np.errstate(invalid="ignore"):
            result[start : start + size] = (counts @ of.values) / (counts @ of.weight)[:, None]
    return result


def _clustered(residuals: np.ndarray, cluster: np.ndarray) -> float:
    return float((np.bincount(cluster, weights=residuals) ** 2).sum())


def components(of: Cells, judges: np.ndarray | None) -> Components:
    """Return the components of the variance of the mean of the first column (Cameron, Gelbach and Miller 2011).

    Args:
        judges: (J,) the score by each judge; None, or one, if that is not known.
    """
    residuals = (of.values[:, 0] - of.means[0] * of.weight) / of.weight.sum()
    cell = float((residuals**2).sum())
    has_pair = of.pair >= 0
    pairs = _clustered(residuals[has_pair], of.pair[has_pair]) - float((residuals[has_pair] ** 2).sum())
    images = _clustered(residuals, of.image) - cell
    return Components(max(0.0, pairs), max(0.0, images), _of_judges(judges), cell)


def _of_judges(judges: np.ndarray | None) -> float:
    """Return the variance of the mean over judges, 0 if it is not known."""
    return 0.0 if judges is None or len(judges) < 2 else float(np.var(judges, ddof=1) / len(judges))


def _degrees(sampled: float, clusters: int, of_judges: float, judges: np.ndarray | None) -> float:
    """Return Satterthwaite's degrees of freedom of the sum of two variances."""
    spread = sampled**2 / (clusters - 1)
    if judges is not None and len(judges) > 1:
        spread += of_judges**2 / (len(judges) - 1)
    return (sampled + of_judges) ** 2 / spread


def difference(value: float, draws: np.ndarray, clusters: int, judges: np.ndarray | None) -> Difference:
    """Return a difference with its interval.

    Args:
        draws: (resamples,) its resampled values.
        clusters: how many pairs were resampled (``Cells.clusters``), at least two.
        judges: (J,) its values by judge; None if there is one.
    """
    from scipy import stats  # slow to import

    sampled, of_judges = float(np.nanvar(draws)), _of_judges(judges)
    if sampled + of_judges == 0:
        return Difference(value, value, value, float(value == 0))
    degrees = _degrees(sampled, clusters, of_judges, judges)
    error = (sampled + of_judges) ** 0.5
    half = float(stats.t.ppf((1 + LEVEL) / 2, degrees)) * error
    return Difference(
        value, max(-1.0, value - half), min(1.0, value + half), float(2 * stats.t.sf(abs(value) / error, degrees))
    )


def fraction(value: float, draws: np.ndarray, images: int, clusters: int, judges: np.ndarray | None) -> Estimate:
    """Return a fraction with its interval; of 0 or 1 that of Clopper and Pearson, with as many trials as images.

    Args:
        draws: (resamples,) its resampled values.
        clusters: how many pairs were resampled (``Cells.clusters``), at least two.
        judges: (J,) its values by judge; None if there is one.
    """
    from scipy import stats  # slow to import

    sampled, of_judges = float(np.nanvar(draws)), _of_judges(judges)
    if sampled + of_judges == 0 or value in (0, 1):
        ends = stats.binomtest(round(value * images), images).proportion_ci(LEVEL, method="exact")
        return Estimate(value, float(ends.low), float(ends.high))
    t = float(stats.t.ppf((1 + LEVEL) / 2, _degrees(sampled, clusters, of_judges, judges)))
    trials = value * (1 - value) / (sampled + of_judges)
    centre = (value + t**2 / (2 * trials)) / (1 + t**2 / trials)
    half = t / (1 + t**2 / trials) * (value * (1 - value) / trials + t**2 / (4 * trials**2)) ** 0.5
    return Estimate(value, max(0.0, centre - half), min(1.0, centre + half))
