"""Intervals over everything that was sampled: images, held-out pairs and judges.

For the *same pairs* and judges, images are resampled within pairs (``within_pair_residuals``). For
*new pairs* and judges, pairs are resampled (``over_pairs``). To the variance that an end of that
interval implies (Zou and Donner 2008, Statistics in Medicine 27:1693) are added that of images with
entries of several pairs (``image_variance``; Cameron, Gelbach and Miller 2011, Journal of Business
and Economic Statistics 29:238) and s² / J of J judges, who are too few to resample. A sum has the
degrees of freedom of Satterthwaite (1946, Biometrics Bulletin 2:110).

``components`` are the parts of the pigeonhole bootstrap (Owen 2007, Annals of Applied Statistics
1:386), in closed form with the residual once instead of three times. ``jeffreys`` is the interval
of Jeffreys with as many trials as a binomial of that variance would have, as in surveys (Franco et
al. 2019, Journal of Survey Statistics and Methodology 7:334), and fewer for few degrees of freedom
(Korn and Graubard 1998, Survey Methodology 24:193).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from compclip.stats.interval import LEVEL, Estimate, clopper_pearson, number_names

# Of the bootstrap over pairs: fewer if all weights would be more than the second number.
RESAMPLES = 10_000
MOST_WEIGHTS = 10_000_000


@dataclass(frozen=True)
class Cells:
    """Sums of entries over each combination of an image and a pair that occurs."""

    image: np.ndarray  # (c,) numbers of images, from 0
    # (c,) numbers of pairs, from 0; -1 for entries without a pair, whose images alone are resampled
    pair: np.ndarray
    weight: np.ndarray  # (c,) sums of weights
    value: np.ndarray  # (c,) sums of weighted values

    @property
    def n_images(self) -> int:
        return int(self.image.max()) + 1

    @property
    def n_pairs(self) -> int:
        return int(self.pair.max()) + 1

    @property
    def has_pair(self) -> np.ndarray:
        return self.pair >= 0

    @property
    def fewest_units(self) -> int:
        """Return the number of images or of pairs, whichever is smaller; that of images if no entry
        has a pair.
        """
        return min(self.n_images, self.n_pairs or self.n_images)

    @property
    def mean(self) -> float:
        return float(self.value.sum() / self.weight.sum())

    @property
    def residuals(self) -> np.ndarray:
        """Return what each cell adds to the error of the mean, (c,)."""
        return (self.value - self.mean * self.weight) / self.weight.sum()


@dataclass(frozen=True)
class Components:
    """What the variance of a score consists of: the variances of the mean by pairs, images, judges,
    and the residual, by images in pairs.
    """

    pairs: float
    images: float
    judges: float
    residual: float


def t_quantile(degrees: float, level: float) -> float:
    """Return the quantile of Student's t that an interval of this level takes."""
    from scipy import special  # slow to import

    return float(special.stdtrit(degrees, (1 + level) / 2))


@dataclass(frozen=True)
class Variance:
    """An estimated variance, and its degrees of freedom."""

    value: float
    degrees: float

    def __add__(self, other: "Variance") -> "Variance":
        """Return a + b, with Satterthwaite's degrees (a + b)² / (a² / d_a + b² / d_b)."""
        value = self.value + other.value
        spread = self.value**2 / self.degrees + other.value**2 / other.degrees
        return Variance(value, value**2 / spread if spread else np.inf)

    def half_width(self, level: float = LEVEL) -> float:
        return t_quantile(self.degrees, level) * self.value**0.5


@dataclass(frozen=True)
class Difference(Estimate):
    """A difference with its p-value against 0; None without an interval."""

    p: float | None


def make_cells(
    images: ArrayLike, pairs: ArrayLike, values: np.ndarray, weights: np.ndarray
) -> Cells:
    """Return the cells of entries, in the order of the names of images and pairs.

    Args:
        images: (n,) the image of each entry; entries of weight 0 are skipped.
        pairs: (n,) the pair of each entry, or None.
        values, weights: (n,).
    """
    is_counted = weights > 0
    image = number_names(np.asarray(images, dtype=object)[is_counted])
    pair = number_names(np.asarray(pairs, dtype=object)[is_counted])
    # One number for each combination; + 1, because -1 stands for no pair.
    width = pair.max() + 2
    combination = image * width + pair + 1
    distinct, cell = np.unique(combination, return_inverse=True)
    weights = weights[is_counted]
    weight = np.bincount(cell, weights=weights)
    value = np.bincount(cell, weights=values[is_counted] * weights)
    image, pair = np.divmod(distinct, width)
    return Cells(image, pair - 1, weight, value)


def _sum_squares(residuals: np.ndarray) -> float:
    return float((residuals**2).sum())


def _clustered(residuals: np.ndarray, cluster: np.ndarray) -> float:
    """Return the variance of a sum whose residuals are added within each cluster."""
    return _sum_squares(np.bincount(cluster, weights=residuals))


def components(cells: Cells, judges: np.ndarray | None) -> Components:
    """Return the components of the variance of the mean (Cameron, Gelbach and Miller 2011)."""
    residuals = cells.residuals
    residual = _sum_squares(residuals)
    has_pair = cells.has_pair
    in_pairs = residuals[has_pair]
    # Each clustered variance contains that of the single cells.
    pairs = _clustered(in_pairs, cells.pair[has_pair]) - _sum_squares(in_pairs)
    images = _clustered(residuals, cells.image) - residual
    by_judges = judge_variance(judges)
    # An estimated component may be below 0.
    return Components(max(0.0, pairs), max(0.0, images), by_judges.value, residual)


def judge_variance(judges: np.ndarray | None) -> Variance:
    """Return the variance s² / J of the mean of the values (J,) by each judge; 0 if there are none,
    or one.
    """
    if judges is None or len(judges) < 2:
        return Variance(0.0, np.inf)
    return Variance(float(np.var(judges, ddof=1) / len(judges)), len(judges) - 1)


def within_pair_residuals(cells: Cells) -> np.ndarray:
    """Return what each image adds to the error of the mean of these pairs, (m,), and then what each
    pair adds, (p,).

    The variance is the sum of squares. Residuals of an image are those from the means of its pairs,
    times sqrt(n / (n - 1)) in a pair of n images. Each pair counts as one more image with the mean
    of all pairs, so that a pair with few images and, by chance, equal values does not get zero
    variance.
    """
    # Entries without a pair are together like one more pair.
    _, pair = np.unique(cells.pair, return_inverse=True)
    images = np.bincount(pair)
    weight = np.bincount(pair, weights=cells.weight)
    value = np.bincount(pair, weights=cells.value)
    total = cells.weight.sum()
    # A single image has no residual.
    correction = np.where(images > 1, np.sqrt(images / np.maximum(images - 1, 1)), 0.0)
    scale = correction / total
    expected = (value / weight)[pair] * cells.weight
    residuals = (cells.value - expected) * scale[pair]
    image_residuals = np.bincount(cells.image, weights=residuals)
    pair_residuals = (value - cells.mean * weight) / (images * total)
    return np.concatenate([image_residuals, pair_residuals])


def image_variance(cells: Cells) -> Variance:
    """Return the variance of the mean by images, less that of images within single pairs; without
    pairs, all of it.
    """
    residuals = cells.residuals
    m = cells.n_images
    within_pairs = _sum_squares(residuals[cells.has_pair])
    # An estimated component may be below 0.
    between_pairs = _clustered(residuals, cells.image) - within_pairs
    variance = max(0.0, between_pairs)
    return Variance(variance * m / (m - 1), m - 1)


@lru_cache(8)
def _bootstrap_weights(pairs: int) -> np.ndarray:
    """Return (resamples, pairs + 1): the weights of pairs, whose mean is 1, and of one more, in a
    Bayesian bootstrap.
    """
    resamples = min(RESAMPLES, MOST_WEIGHTS // pairs)
    # A fixed seed, so that intervals do not depend on the run's.
    weights = np.random.default_rng(0).exponential(size=(resamples, pairs + 1))
    return weights / weights[:, :-1].mean(axis=1, keepdims=True)


def _widening(size: np.ndarray, level: float) -> float:
    """Return by how much to widen the bootstrap of pairs of these sizes: Student's t for their
    effective number k (Kish 1965) over the normal quantile, and sqrt(k / (k - 1)).
    """
    from scipy import special  # slow to import

    effective = np.abs(size).sum() ** 2 / (size**2).sum()
    # At least 3: a choice, so that Student's t has 2 degrees of freedom, and not wider tails.
    effective = max(3.0, float(effective))
    few_pairs = (effective / (effective - 1)) ** 0.5
    normal = special.ndtri(1 - (1 - level) / 2)
    return few_pairs * t_quantile(effective - 1, level) / normal


def over_pairs(
    value: np.ndarray,
    size: np.ndarray,
    extremes: tuple[float, float],
    level: float = LEVEL,
    without_pair: Sequence[float] = (0.0, 0.0),
) -> tuple[float, float] | None:
    """Return the interval of Σ value / Σ size for other pairs like these; None if Σ size may be 0.

    It joins two. The first is the Bayesian bootstrap of the pairs (Rubin 1981, Annals of Statistics
    9:130), wider by Student's t for their effective number (Kish 1965), at least 3. The second adds
    one more pair, as bad or as good as a pair can be: the bound of Gaffke (2005) on the mean of
    bounded values of any distribution (Learned-Miller and Thomas 2020, arXiv:1905.06208), which is
    that of Clopper and Pearson if all pairs are at one extreme. It allows for pairs that were not
    sampled. Then the truth can only be beyond one end, so each end has all of the error, 5 %.

    Args:
        value, size: (K,) sums over the entries of each pair; there are at least two pairs.
        extremes: the ratios of the worst and the best possible pair.
        without_pair: sums over entries without a pair, which are not resampled.
    """
    tail = (1 - level) / 2
    all_weights = _bootstrap_weights(len(size))
    weights = all_weights[:, :-1]
    fixed_value, fixed_size = without_pair
    values = weights @ value + fixed_value
    sizes = weights @ size + fixed_size
    if np.quantile(sizes, tail) <= 0:
        return None
    # Up to ``tail`` of the resamples may still have a size of 0 or below.
    sizes = np.maximum(sizes, 1e-9 * size.sum())
    ratio = (value.sum() + fixed_value) / (size.sum() + fixed_size)
    sampled = np.quantile(values / sizes, [tail, 1 - tail])
    widening = _widening(size, level)
    low, high = ratio + widening * (sampled - ratio)

    # The additional pair has the average size.
    more_size = all_weights[:, -1] * size.mean()
    sizes = sizes + more_size
    worst, best = extremes
    with_worst = (values + worst * more_size) / sizes
    with_best = (values + best * more_size) / sizes
    low = min(low, np.quantile(with_worst, 2 * tail))
    high = max(high, np.quantile(with_best, 1 - 2 * tail))
    return float(low), float(high)


def variance_from_end(value: float, end: float, pairs: int) -> Variance:
    """Return the variance that an end of ``over_pairs`` implies (Zou and Donner 2008)."""
    degrees = pairs - 1
    standard_error = (end - value) / t_quantile(degrees, LEVEL)
    return Variance(standard_error**2, degrees)


def _variances(cells: Cells, extremes: tuple[float, float]) -> tuple[Variance, Variance]:
    """Return the variances of the mean that the lower and the upper end of its interval have, over
    images and pairs.
    """
    images = image_variance(cells)
    has_pair = cells.has_pair
    if not has_pair.any():
        return images, images
    pair = cells.pair[has_pair]
    value = np.bincount(pair, weights=cells.value[has_pair])
    size = np.bincount(pair, weights=cells.weight[has_pair])
    no_pair = ~has_pair
    without_pair = (cells.value[no_pair].sum(), cells.weight[no_pair].sum())
    interval = over_pairs(value, size, extremes, without_pair=without_pair)
    assert interval is not None  # weights are above 0
    low, high = interval
    lower = variance_from_end(cells.mean, low, len(size)) + images
    upper = variance_from_end(cells.mean, high, len(size)) + images
    return lower, upper


def difference(value: float, lower: Variance, upper: Variance | None = None) -> Difference:
    """Return a difference of fractions with its interval, by the variances of its lower and upper
    end; None: the same.
    """
    from scipy import special  # slow to import

    upper = upper or lower
    # Only the end that is nearer to 0 can reach it.
    toward_0 = lower if value > 0 else upper
    if toward_0.value == 0:
        p = float(value == 0)
    else:
        # Two-sided: the probability of a t farther from 0 on either side.
        t = -abs(value) / toward_0.value**0.5
        p = float(2 * special.stdtr(toward_0.degrees, t))
    low = max(-1.0, value - lower.half_width())
    high = min(1.0, value + upper.half_width())
    return Difference(value, low, high, p)


def estimate_difference(
    value: float,
    terms: Sequence[Cells],
    judges: np.ndarray | None = None,
    extremes: tuple[float, float] = (0.0, 1.0),
) -> Difference:
    """Return a difference with its interval over images, pairs and judges; without it, if there are
    too few pairs.

    Args:
        terms: the cells of the differences of the same entries, or those of the minuend and of the
            subtrahend, which are independent.
        judges: (J,) its value by each judge; None for one judge.
        extremes: the worst and the best that a pair can be in each of the terms.
    """
    if min(cells.fewest_units for cells in terms) < 2:
        return Difference(value, None, None, None)
    lower = upper = judge_variance(judges)
    for number, cells in enumerate(terms):
        term_lower, term_upper = _variances(cells, extremes)
        # The difference is low where the subtrahend is high.
        if number == 1:
            term_lower, term_upper = term_upper, term_lower
        lower += term_lower
        upper += term_upper
    return difference(value, lower, upper)


def estimate(cells: Cells, judges: np.ndarray | None = None) -> Estimate:
    """Return a fraction with its interval over images, pairs and judges; without it, if there are
    too few pairs.

    The interval of 0 and of 1 is that of Clopper and Pearson, with as many trials as pairs, or as
    images without pairs.

    Args:
        judges: (J,) its value by each judge; None for one judge.
    """
    value = cells.mean
    if cells.fewest_units < 2:
        return Estimate(value, None, None)
    by_judges = judge_variance(judges)
    if not cells.n_pairs:
        return jeffreys(value, image_variance(cells) + by_judges, cells.n_images)
    # All pairs are equal, so their variance would be 0, and the interval without length.
    if value in (0, 1):
        return clopper_pearson(value, cells.n_pairs)
    lower, upper = _variances(cells, (0.0, 1.0))
    low = max(0.0, value - (lower + by_judges).half_width())
    high = min(1.0, value + (upper + by_judges).half_width())
    return Estimate(value, low, high)


def estimate_within(cells: Cells) -> Estimate:
    """Return a fraction with its interval for these pairs, over images alone."""
    if cells.n_images < 2:
        return Estimate(cells.mean, None, None)
    return jeffreys(cells.mean, variance_within(cells), cells.n_images)


def variance_within(cells: Cells) -> Variance:
    """Return the variance of the mean over images, for these pairs."""
    return Variance(_sum_squares(within_pair_residuals(cells)), cells.n_images - 1)


def jeffreys(value: float, variance: Variance, n_images: int) -> Estimate:
    """Return a fraction with the interval of Jeffreys; of 0 or 1 that of Clopper and Pearson, with
    as many trials as images.
    """
    from scipy import special  # slow to import

    if variance.value == 0 or value in (0, 1):
        return clopper_pearson(value, n_images)
    # As many trials as a binomial of this variance has (Franco et al. 2019), and fewer for few
    # degrees of freedom (Korn and Graubard 1998).
    normal = special.ndtri((1 + LEVEL) / 2)
    fewer = (normal / t_quantile(variance.degrees, LEVEL)) ** 2
    trials = value * (1 - value) / variance.value * fewer
    # The posterior of Jeffreys' prior, Beta(hits + 1/2, misses + 1/2).
    hits = value * trials + 0.5
    misses = (1 - value) * trials + 0.5
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = special.betaincinv(hits, misses, tails)
    return Estimate(value, min(value, float(low)), max(value, float(high)))
