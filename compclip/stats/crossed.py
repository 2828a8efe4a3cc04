"""Intervals over everything that was sampled: images, held-out pairs and judges.

Images and pairs are crossed: an image has entries of several pairs, and a pair entries of many images. The pigeonhole
bootstrap (Owen 2007, Annals of Applied Statistics 1:386) resamples both independently and multiplies their counts. The
variance of a mean under it has a closed form, with the residual (what neither images nor pairs explain) three times; it
is counted once here. Pairs are few and unequally frequent: their part is made unbiased, and has degrees of freedom, as
Bell and McCaffrey (2002, Survey Methodology 28:169) do for clusters. Judges are too few to resample: the variance of
their mean is s² / J. A sum of variances has the degrees of freedom of Satterthwaite (1946). A fraction has the interval
of Jeffreys with as many trials as a binomial of that variance would have, as in surveys (Franco et al. 2019, Journal of
Survey Statistics and Methodology 7:334), and fewer for few degrees of freedom (Korn and Graubard 1998, Survey
Methodology 24:193). Near 0 it misses low and high truths about equally often; Wilson's misses low ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compclip.stats.interval import LEVEL, Estimate, exact


@dataclass(frozen=True)
class Cells:
    """Sums of entries over each combination of an image and a pair that occurs.

    Args:
        image: (c,) numbers of images, from 0.
        pair: (c,) numbers of pairs, from 0; -1 for entries without a pair, whose images alone are resampled.
        weight: (c,) sums of weights.
        value: (c,) sums of weighted values.
    """

    image: np.ndarray
    pair: np.ndarray
    weight: np.ndarray
    value: np.ndarray

    @property
    def images(self) -> int:
        return int(self.image.max()) + 1

    @property
    def pairs(self) -> int:
        return int(self.pair.max()) + 1

    @property
    def clusters(self) -> int:
        """Return the size of the smallest resampled factor: the pairs, or the images if no entry has a pair."""
        return min(self.images, self.pairs or self.images)

    @property
    def mean(self) -> float:
        return float(self.value.sum() / self.weight.sum())

    @property
    def residuals(self) -> np.ndarray:
        """Return what each cell adds to the error of the mean, (c,)."""
        return (self.value - self.mean * self.weight) / self.weight.sum()


@dataclass(frozen=True)
class Components:
    """What the variance of a score consists of, each a variance of the mean; residual: of images in pairs."""

    pairs: float
    images: float
    judges: float
    residual: float


@dataclass(frozen=True)
class Variance:
    """An estimated variance, and its degrees of freedom."""

    value: float
    degrees: float

    def __add__(self, other: "Variance") -> "Variance":
        value = self.value + other.value
        spread = self.value**2 / self.degrees + other.value**2 / other.degrees
        return Variance(value, value**2 / spread if spread else np.inf)

    @property
    def t(self) -> float:
        """Return the quantile of Student's t that an interval takes."""
        from scipy import stats  # slow to import

        return float(stats.t.ppf((1 + LEVEL) / 2, self.degrees))


@dataclass(frozen=True)
class Difference(Estimate):
    """A difference with its p-value against 0."""

    p: float


def cells(images: np.ndarray, pairs: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Cells:
    """Return the cells of entries, in the order of the names of images and pairs.

    Args:
        images: (n,) the image of each entry; entries of weight 0 are skipped.
        pairs: (n,) the pair of each entry, or None.
        values: (n,).
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
    weight, value = (np.bincount(cell, weights=column) for column in (weights[kept], (values * weights)[kept]))
    image, pair = np.divmod(combined, width)
    return Cells(image, pair - 1, weight, value)


def _clustered(residuals: np.ndarray, cluster: np.ndarray) -> float:
    return float((np.bincount(cluster, weights=residuals) ** 2).sum())


def components(of: Cells, judges: np.ndarray | None) -> Components:
    """Return the components of the variance of the mean (Cameron, Gelbach and Miller 2011)."""
    residuals = of.residuals
    cell = float((residuals**2).sum())
    has_pair = of.pair >= 0
    pairs = _clustered(residuals[has_pair], of.pair[has_pair]) - float((residuals[has_pair] ** 2).sum())
    images = _clustered(residuals, of.image) - cell
    return Components(max(0.0, pairs), max(0.0, images), of_judges(judges).value, cell)


def of_judges(judges: np.ndarray | None) -> Variance:
    """Return the variance of the mean of the values (J,) by each judge; 0 if there are none, or one."""
    if judges is None or len(judges) < 2:
        return Variance(0.0, np.inf)
    return Variance(float(np.var(judges, ddof=1) / len(judges)), len(judges) - 1)


def variance(of: Cells) -> Variance:
    """Return the variance of the mean over images and pairs; there must be at least two pairs."""
    parts, has_pair, m = components(of, None), of.pair >= 0, of.images
    others = Variance((parts.images + parts.residual) * m / (m - 1), m - 1)
    if not parts.pairs:
        return others
    # Effects of variance 1 of pairs with fractions w of the weight: the mean has variance Σ w², and the sum of squared
    # residuals, Σ w² (effect - mean effect)², the expectation trace A and the variance 2 trace A².
    w = np.bincount(of.pair[has_pair], weights=of.weight[has_pair]) / of.weight[has_pair].sum()
    squares = w**2
    whole = squares.sum()
    a = np.diag(squares) - np.outer(squares, w) - np.outer(w, squares) + whole * np.outer(w, w)
    expected = max(float(np.trace(a)), 1e-9 * whole)
    return Variance(parts.pairs * whole / expected, max(1.0, expected**2 / (a**2).sum())) + others


def difference(value: float, variance: Variance, limit: float = 1.0) -> Difference:
    """Return a difference, which is at most ``limit``, with its interval."""
    from scipy import stats  # slow to import

    if variance.value == 0:
        return Difference(value, value, value, float(value == 0))
    error = variance.value**0.5
    p = float(2 * stats.t.sf(abs(value) / error, variance.degrees))
    half = variance.t * error
    return Difference(value, max(-limit, value - half), min(limit, value + half), p)


def estimate_difference(
    value: float, parts: Sequence[Cells], judges: np.ndarray | None = None, limit: float = 1.0
) -> Difference | None:
    """Return a difference with its interval over images, pairs and judges; None if there are too few pairs.

    Args:
        parts: the cells of the differences of the same entries, or those of both sides, which are independent.
        judges: (J,) its value by each judge; None for one judge.
        limit: the greatest possible difference.
    """
    if min(of.clusters for of in parts) < 2:
        return None
    total = of_judges(judges)
    for of in parts:
        total += variance(of)
    return difference(value, total, limit)


def estimate(of: Cells, judges: np.ndarray | None = None) -> Estimate:
    """Return a fraction with its interval over images, pairs and judges; without it, if there are too few pairs.

    Args:
        judges: (J,) its value by each judge; None for one judge.
    """
    if of.clusters < 2:
        return Estimate(of.mean, None, None)
    return fraction(of.mean, variance(of) + of_judges(judges), of.images)


def fraction(value: float, variance: Variance, images: int) -> Estimate:
    """Return a fraction with its interval; of 0 or 1 that of Clopper and Pearson, with as many trials as images."""
    if variance.value == 0 or value in (0, 1):
        return exact(value, images)
    from scipy import stats  # slow to import

    trials = value * (1 - value) / variance.value * (stats.norm.ppf((1 + LEVEL) / 2) / variance.t) ** 2
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = map(float, stats.beta.ppf(tails, value * trials + 0.5, (1 - value) * trials + 0.5))
    return Estimate(value, min(value, low), max(value, high))
