"""Intervals over everything that was sampled: images, held-out pairs and judges.

For *these* pairs and judges, images are resampled within pairs (``within``). For *other* pairs and
judges, pairs are resampled (``over_pairs``). To the variance that an end of that interval implies
(Zou and Donner 2008, Statistics in Medicine 27:1693) are added that of images with entries of
several pairs (``across``; Cameron, Gelbach and Miller 2011, Journal of Business and Economic
Statistics 29:238) and s² / J of J judges, who are too few to resample. A sum has the degrees of
freedom of Satterthwaite (1946, Biometrics Bulletin 2:110).

``components`` are the parts of the pigeonhole bootstrap (Owen 2007, Annals of Applied Statistics
1:386), in closed form with the residual once instead of three times. ``fraction`` is the interval
of Jeffreys with as many trials as a binomial of that variance would have, as in surveys (Franco et
al. 2019, Journal of Survey Statistics and Methodology 7:334), and fewer for few degrees of freedom
(Korn and Graubard 1998, Survey Methodology 24:193).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from compclip.stats.interval import LEVEL, Estimate, exact, number_names

RESAMPLES, CELLS = 10_000, 10_000_000  # of the bootstrap over pairs; at most so many numbers


@dataclass(frozen=True)
class Cells:
    """Sums of entries over each combination of an image and a pair that occurs."""

    image: np.ndarray  # (c,) numbers of images, from 0
    # (c,) numbers of pairs, from 0; -1 for entries without a pair, whose images alone are resampled
    pair: np.ndarray
    weight: np.ndarray  # (c,) sums of weights
    value: np.ndarray  # (c,) sums of weighted values

    @property
    def images(self) -> int:
        return int(self.image.max()) + 1

    @property
    def pairs(self) -> int:
        return int(self.pair.max()) + 1

    @property
    def clusters(self) -> int:
        """Return the size of the smallest resampled factor: the pairs, or the images if no entry
        has a pair.
        """
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
    """What the variance of a score consists of, each a variance of the mean; residual: of images in
    pairs.
    """

    pairs: float
    images: float
    judges: float
    residual: float


def student(degrees: float, level: float) -> float:
    """Return the quantile of Student's t that an interval of this level takes."""
    from scipy import special  # slow to import

    return float(special.stdtrit(degrees, (1 + level) / 2))


@dataclass(frozen=True)
class Variance:
    """An estimated variance, and its degrees of freedom."""

    value: float
    degrees: float

    def __add__(self, other: "Variance") -> "Variance":
        value = self.value + other.value
        spread = self.value**2 / self.degrees + other.value**2 / other.degrees
        return Variance(value, value**2 / spread if spread else np.inf)

    def half_width(self, level: float = LEVEL) -> float:
        return student(self.degrees, level) * self.value**0.5


@dataclass(frozen=True)
class Difference(Estimate):
    """A difference with its p-value against 0; None without an interval."""

    p: float | None


def cells(images: ArrayLike, pairs: ArrayLike, values: np.ndarray, weights: np.ndarray) -> Cells:
    """Return the cells of entries, in the order of the names of images and pairs.

    Args:
        images: (n,) the image of each entry; entries of weight 0 are skipped.
        pairs: (n,) the pair of each entry, or None.
        values, weights: (n,).
    """
    kept = weights > 0
    image, pair = (number_names(np.asarray(names, dtype=object)[kept]) for names in (images, pairs))
    width = pair.max() + 2
    combined, cell = np.unique(image * width + pair + 1, return_inverse=True)
    weight, value = (
        np.bincount(cell, weights=column) for column in (weights[kept], (values * weights)[kept])
    )
    image, pair = np.divmod(combined, width)
    return Cells(image, pair - 1, weight, value)


def _clustered(residuals: np.ndarray, cluster: np.ndarray) -> float:
    return float((np.bincount(cluster, weights=residuals) ** 2).sum())


def components(of: Cells, judges: np.ndarray | None) -> Components:
    """Return the components of the variance of the mean (Cameron, Gelbach and Miller 2011)."""
    residuals = of.residuals
    cell = float((residuals**2).sum())
    has_pair = of.pair >= 0
    pairs = _clustered(residuals[has_pair], of.pair[has_pair]) - float(
        (residuals[has_pair] ** 2).sum()
    )
    images = _clustered(residuals, of.image) - cell
    return Components(max(0.0, pairs), max(0.0, images), of_judges(judges).value, cell)


def of_judges(judges: np.ndarray | None) -> Variance:
    """Return the variance of the mean of the values (J,) by each judge; 0 if there are none, or
    one.
    """
    if judges is None or len(judges) < 2:
        return Variance(0.0, np.inf)
    return Variance(float(np.var(judges, ddof=1) / len(judges)), len(judges) - 1)


def within(of: Cells) -> np.ndarray:
    """Return what each image adds to the error of the mean of these pairs, (m,), and then what each
    pair adds, (p,).

    The variance is the sum of squares. Residuals of an image are those from the means of its pairs,
    times sqrt(n / (n - 1)) in a pair of n images. Each pair counts as one more image with the mean
    of all pairs: a pair of few images, whose values are equal by chance, is not taken for certain.
    """
    pair = np.unique(of.pair, return_inverse=True)[1]
    weight, value, images = (
        np.bincount(pair, weights=column) for column in (of.weight, of.value, np.ones(len(pair)))
    )
    scale = np.sqrt(images / np.maximum(images - 1, 1)) * (images > 1) / of.weight.sum()
    residuals = (of.value - (value / weight)[pair] * of.weight) * scale[pair]
    more = (value - of.mean * weight) / (images * of.weight.sum())
    return np.concatenate([np.bincount(of.image, weights=residuals), more])


def across(of: Cells) -> Variance:
    """Return the variance of the mean by images, less that of images within single pairs; without
    pairs, all of it.
    """
    residuals, m = of.residuals, of.images
    own = residuals[of.pair >= 0]
    return Variance(
        max(0.0, _clustered(residuals, of.image) - float((own**2).sum())) * m / (m - 1), m - 1
    )


@lru_cache(8)
def _counts(pairs: int) -> np.ndarray:
    """Return how often each of some pairs, and one more, is drawn in each resample of a Bayesian
    bootstrap.
    """
    counts = np.random.default_rng(0).exponential(size=(min(RESAMPLES, CELLS // pairs), pairs + 1))
    return counts / counts[:, :-1].mean(axis=1, keepdims=True)


def over_pairs(
    value: np.ndarray,
    size: np.ndarray,
    ends: tuple[float, float],
    level: float = LEVEL,
    certain: Sequence[float] = (0.0, 0.0),
) -> tuple[float, float] | None:
    """Return the interval of Σ value / Σ size for other pairs like these; None if Σ size may be 0.

    It joins two. The first is the Bayesian bootstrap of the pairs (Rubin 1981, Annals of Statistics
    9:130), wider by Student's t for their effective number (Kish 1965), at least 3. The second adds
    one more pair, as bad or as good as a pair can be: the bound of Gaffke (2005) on the mean of
    bounded values of any distribution (Learned-Miller and Thomas 2020, arXiv:1905.06208), which is
    that of Clopper and Pearson if all pairs are at one end. It allows for pairs that were not
    sampled. Then the truth can only be beyond one end, so each end has all of the error, 5 %.

    Args:
        value, size: (K,) sums over the entries of each pair; there are at least two pairs.
        ends: the ratio of the worst and of the best pair that can be.
        certain: sums over entries without a pair, which are not resampled.
    """
    from scipy import special  # slow to import

    tail, counts = (1 - level) / 2, _counts(len(size))
    values, sizes = counts[:, :-1] @ value + certain[0], counts[:, :-1] @ size + certain[1]
    if np.quantile(sizes, tail) <= 0:
        return None
    sizes = np.maximum(sizes, 1e-9 * size.sum())
    ratio = (value.sum() + certain[0]) / (size.sum() + certain[1])
    effective = max(3.0, float(np.abs(size).sum() ** 2 / (size**2).sum()))
    wider = (
        (effective / (effective - 1)) ** 0.5
        * student(effective - 1, level)
        / special.ndtri(1 - tail)
    )
    low, high = ratio + wider * (np.quantile(values / sizes, [tail, 1 - tail]) - ratio)
    more = counts[:, -1] * size.mean()
    worst, best = ((values + end * more) / (sizes + more) for end in ends)
    low, high = min(low, np.quantile(worst, 2 * tail)), max(high, np.quantile(best, 1 - 2 * tail))
    return float(low), float(high)


def side(value: float, end: float, pairs: int, others: Variance, level: float = LEVEL) -> Variance:
    """Return the variance that an end of ``over_pairs`` implies, and the others (Zou and Donner
    2008).
    """
    return Variance(((end - value) / student(pairs - 1, level)) ** 2, pairs - 1) + others


def _sides(of: Cells, ends: tuple[float, float]) -> tuple[Variance, Variance]:
    """Return the variances of the mean that its interval has below and above, over images and
    pairs.
    """
    has_pair = of.pair >= 0
    if not has_pair.any():
        return across(of), across(of)
    value, size = (
        np.bincount(of.pair[has_pair], weights=column[has_pair]) for column in (of.value, of.weight)
    )
    certain = of.value[~has_pair].sum(), of.weight[~has_pair].sum()
    over = over_pairs(value, size, ends, certain=certain)
    assert over is not None  # weights are above 0
    below, above = (side(of.mean, end, len(size), across(of)) for end in over)
    return below, above


def difference(value: float, below: Variance, above: Variance | None = None) -> Difference:
    """Return a difference of fractions with its interval, by its variance below and above; None:
    that below.
    """
    from scipy import special  # slow to import

    above = above or below
    toward_0 = below if value > 0 else above
    if toward_0.value == 0:
        p = float(value == 0)
    else:
        p = float(2 * special.stdtr(toward_0.degrees, -abs(value) / toward_0.value**0.5))
    return Difference(
        value, max(-1.0, value - below.half_width()), min(1.0, value + above.half_width()), p
    )


def estimate_difference(
    value: float,
    parts: Sequence[Cells],
    judges: np.ndarray | None = None,
    ends: tuple[float, float] = (0.0, 1.0),
) -> Difference:
    """Return a difference with its interval over images, pairs and judges; without it, if there are
    too few pairs.

    Args:
        parts: the cells of the differences of the same entries, or those of both sides, which are
            independent.
        judges: (J,) its value by each judge; None for one judge.
        ends: the worst and the best that a pair can be in each of the parts.
    """
    if min(of.clusters for of in parts) < 2:
        return Difference(value, None, None, None)
    below = above = of_judges(judges)
    for number, of in enumerate(parts):
        sides = _sides(of, ends)
        below, above = below + sides[number % 2], above + sides[1 - number % 2]
    return difference(value, below, above)


def estimate(of: Cells, judges: np.ndarray | None = None) -> Estimate:
    """Return a fraction with its interval over images, pairs and judges; without it, if there are
    too few pairs.

    The interval of 0 and of 1 is that of Clopper and Pearson, with as many trials as pairs, or as
    images without pairs.

    Args:
        judges: (J,) its value by each judge; None for one judge.
    """
    value, others = of.mean, of_judges(judges)
    if of.clusters < 2:
        return Estimate(value, None, None)
    if not of.pairs:
        return fraction(value, across(of) + others, of.images)
    if value in (0, 1):
        return exact(value, of.pairs)
    below, above = (of_side + others for of_side in _sides(of, (0.0, 1.0)))
    return Estimate(
        value, max(0.0, value - below.half_width()), min(1.0, value + above.half_width())
    )


def estimate_within(of: Cells) -> Estimate:
    """Return a fraction with its interval for these pairs, over images alone."""
    return (
        fraction(of.mean, variance_within(of), of.images)
        if of.images > 1
        else Estimate(of.mean, None, None)
    )


def variance_within(of: Cells) -> Variance:
    """Return the variance of the mean over images, for these pairs."""
    return Variance(float((within(of) ** 2).sum()), of.images - 1)


def fraction(value: float, variance: Variance, images: int) -> Estimate:
    """Return a fraction with its interval; of 0 or 1 that of Clopper and Pearson, with as many
    trials as images.
    """
    if variance.value == 0 or value in (0, 1):
        return exact(value, images)
    from scipy import special  # slow to import

    trials = (
        value
        * (1 - value)
        / variance.value
        * (special.ndtri((1 + LEVEL) / 2) / student(variance.degrees, LEVEL)) ** 2
    )
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = map(
        float, special.betaincinv(value * trials + 0.5, (1 - value) * trials + 0.5, tails)
    )
    return Estimate(value, min(value, low), max(value, high))
