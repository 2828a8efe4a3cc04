"""The fraction composed: how much of what was held out a generator composes, between two generators of known skill.

*Habit* (H) shows the noun with a usual adjective, the *reference* (R) what is asked. With the scores of a generator (G)
on the same prompts, θ = Σ w (G - H) / Σ w (R - H): 0 like habit, 1 like the reference. For a pair that the judges
cannot read, R and H have similar scores, so it counts little.

For the *same pairs* and judges, images are resampled, or clusters of images: the set of Fieller (1954, Journal of the
Royal Statistical Society B 16:175), with the variance of clusters within pairs. For *new pairs* and judges, the
interval over pairs of ``crossed.over_pairs``, where a pair that was not sampled may have 0 or 1, with the variance of
judges.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from compclip.stats import crossed
from compclip.stats.interval import LEVEL

REGIONS = (0.1, 0.4, 0.6, 0.9)
REGION_WORDS = ("memorizes", "hardly composes", "half", "mostly composes", "composes")
# One pair decides if it has more than this fraction of the evidence, or if its removal changes the value by more than
# this fraction of the width of the interval for new pairs.
DECIDES = 0.5
NORMAL_DRAWS = 100_000


@dataclass(frozen=True)
class Composed:
    """A fraction composed; unknown values are None."""

    value: float | None  # None if it is not measurable
    same_pairs_low: float | None = None
    same_pairs_high: float | None = None
    new_pairs_low: float | None = None  # None for one judge or one pair
    new_pairs_high: float | None = None
    why: str | None = None  # why the value, or the interval for new pairs and judges, is None
    pairs: Sequence[str] = ()  # (K,) names, sorted
    # (K,) the fraction of Σ w (R - H) that each pair has; below 0 if H is better than R
    evidence: np.ndarray = field(default_factory=lambda: np.empty(0))
    decides: str | None = None  # a pair that decides alone
    judges: int = 0  # number of judges
    # (c,), (K,) the contribution of each cluster and pair to the error, for ``shared_level``
    of_clusters: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    of_pairs: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def word(self) -> str | None:
        """Return the word for the same pairs and judges; None for one judge."""
        if self.same_pairs_low is None or self.same_pairs_high is None or self.judges < 2:
            return None
        return word(self.same_pairs_low, self.same_pairs_high)


def word(low: float, high: float) -> str:
    """Return the word of the region that contains an interval, or a range of words such as "hardly to half"."""
    first = int(np.searchsorted(REGIONS, low, side="right"))
    last = max(first, int(np.searchsorted(REGIONS, high, side="left")))
    if first == last:
        return REGION_WORDS[first]
    return " to ".join(REGION_WORDS[region].removesuffix(" composes") for region in (first, last))


def fraction_composed(
    g: ArrayLike, h: ArrayLike, r: ArrayLike, pairs: ArrayLike, *, clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None, equal_pairs: bool = False, level: float = LEVEL,
) -> Composed:  # fmt: skip
    """Estimate the fraction composed of generator ``g``, with both intervals.

    Args:
        g, h, r: (J, n) scores of the generator, habit and the reference on the same entries by J judges.
        pairs: (n,) the pair of each entry.
        clusters: (n,) the image of each entry, or the class of its image, if images have classes; None: one an entry.
        weights: (n,) weights of entries; None: equal.
        equal_pairs: give all pairs the same weight.
        level: of each interval; from ``shared_level`` if several generators are shown.

    Raises:
        ValueError: if the shapes differ or a score is NaN.
    """
    scores = np.stack([np.atleast_2d(np.asarray(of, float)) for of in (g, h, r)])
    judges, entries = scores.shape[1:]
    weight = np.ones(entries) if weights is None else np.asarray(weights, float)
    images = np.arange(entries) if clusters is None else np.asarray(clusters, object)
    if not np.isfinite(scores).all() or not len(weight) == len(images) == len(np.asarray(pairs)) == entries:
        raise ValueError("scores must be finite, with a pair, a cluster and a weight for each entry")
    kept = weight > 0
    scores, weight, images = scores[:, :, kept], weight[kept], images[kept]
    names, pair = np.unique(np.asarray(pairs)[kept].astype(str), return_inverse=True)
    if equal_pairs:
        weight = weight / np.bincount(pair, weights=weight)[pair]
    above, whole = scores[0] - scores[1], scores[2] - scores[1]
    n, d = (np.bincount(pair, weights=weight * of.mean(axis=0)) for of in (above, whole))

    def cells(theta: float, sign: float = 1.0) -> crossed.Cells:
        return crossed.cells(images, pair, (sign * above - theta * whole).mean(axis=0), weight)

    if cells(0).images < 2:
        return Composed(None, why="fewer than two images or classes")
    # The variance of Σ w [(G - H) - θ (R - H)] is quadratic in θ.
    unit, t = weight.sum() ** 2, crossed.student(cells(0).images - 1, level)
    nn, dd, both = ((crossed.within(cells(*of)) ** 2).sum() * unit for of in ((0, 1), (1, 0), (1, 1)))
    nd = (nn + dd - both) / 2
    a, b, c = d.sum() ** 2 - t**2 * dd, n.sum() * d.sum() - t**2 * nd, n.sum() ** 2 - t**2 * nn
    if d.sum() <= 0 or a <= 0:
        gap, error = d.sum() / weight.sum(), t * dd**0.5 / weight.sum()
        why = f"reference minus habit is {gap:.3f} [{gap - error:.3f}, {gap + error:.3f}], which may be 0"
        return Composed(None, why=why)
    theta = float(n.sum() / d.sum())
    root = max(0.0, b**2 - a * c) ** 0.5
    low, high = min(theta, float((b - root) / a)), max(theta, float((b + root) / a))
    errors, scale = cells(theta), weight.sum() / d.sum()
    by_judge = ((above - theta * whole) * weight).sum(axis=1) / d.sum()
    across = crossed.across(errors)
    others = crossed.Variance(across.value * scale**2, across.degrees) + crossed.of_judges(by_judge)
    other = crossed.over_pairs(n, d, (0.0, 1.0), level) if judges > 1 and len(d) > 1 else None
    if other:
        below, beyond = (crossed.side(theta, end, len(d), others, level).half_width(level) for end in other)
        # Scores of 0 and 1 are extremes: new pairs on average do not exceed them unless these pairs do.
        other = max(theta - below, min(0.0, low)), min(theta + beyond, max(1.0, high))
    missing = "one judge" if judges < 2 else "one pair" if len(d) < 2 else "reference minus habit may be 0"
    new_pairs_low, new_pairs_high = other or (None, None)
    return Composed(
        value=theta, same_pairs_low=low, same_pairs_high=high, new_pairs_low=new_pairs_low,
        new_pairs_high=new_pairs_high,
        why=None if other else f"not known for new pairs and judges: {missing}",
        pairs=tuple(map(str, names)), evidence=d / d.sum(), decides=_deciding(n, d, names, other), judges=judges,
        of_clusters=crossed.within(errors) * scale, of_pairs=(n - theta * d) / d.sum(),
    )  # fmt: skip


def _deciding(n: np.ndarray, d: np.ndarray, names: np.ndarray, other: tuple[float, float] | None) -> str | None:
    """Return a pair that decides alone, None if there is none."""
    without = d.sum() - d
    moves = np.abs((n.sum() - n) / np.where(without > 0, without, np.nan) - n.sum() / d.sum())
    far = DECIDES * (other[1] - other[0]) if other else np.inf
    decides = (d > DECIDES * d.sum()) | ~(moves <= far)
    return str(names[np.argmax(np.where(decides, d, -np.inf))]) if decides.any() else None


def shared_level(errors: Sequence[np.ndarray], level: float = LEVEL) -> float:
    """Return the level that each of several intervals needs for a simultaneous coverage of ``level``: max-|t|.

    The critical value is that of the greatest of correlated normal errors (Hothorn, Bretz and Westfall 2008,
    Biometrical Journal 50:346), which each interval takes at its own degrees of freedom.

    Args:
        errors: for each interval, (c,) contributions of the same clusters, or pairs, to its error.
    """
    from scipy import special  # slow to import

    table = np.stack(list(errors))
    table = table[(table**2).sum(axis=1) > 0]
    if len(table) < 2:
        return level
    table /= np.sqrt((table**2).sum(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(table @ table.T)
    normal = np.random.default_rng(0).standard_normal((NORMAL_DRAWS, len(table)))
    greatest = np.abs(normal @ (vectors * np.sqrt(np.maximum(values, 0))).T).max(axis=1)
    return max(level, float(2 * special.ndtr(np.quantile(greatest, level)) - 1))


def fractions_composed(
    generators: Sequence[ArrayLike], h: ArrayLike, r: ArrayLike, pairs: ArrayLike, **settings: Any
) -> list[Composed]:
    """Estimate the fractions composed of several generators on the same entries, with simultaneous intervals.

    Args: as of ``fraction_composed``.
    """
    alone = [fraction_composed(g, h, r, pairs, **settings) for g in generators]
    known = [of for of in alone if of.value is not None]
    if len(known) < 2:
        return alone
    level = max(shared_level([getattr(of, errors) for of in known]) for errors in ("of_clusters", "of_pairs"))
    return [fraction_composed(g, h, r, pairs, **settings, level=level) for g in generators]
