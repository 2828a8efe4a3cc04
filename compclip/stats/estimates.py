"""Scores and their differences with both intervals: over images, pairs and judges, and over images alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from compclip.core.seeds import rng
from compclip.stats import crossed, interval
from compclip.stats.interval import Estimate


@dataclass(frozen=True)
class ScoreEstimate(Estimate):
    """A score. ``low`` and ``high`` cover images, pairs and judges; ``fixed_low`` and ``fixed_high`` images alone."""

    fixed_low: float | None
    fixed_high: float | None
    components: crossed.Components


@dataclass(frozen=True)
class ScoreDifference(Estimate):
    """A difference of scores, its intervals as of ``ScoreEstimate``, and its p-value against 0."""

    fixed_low: float | None
    fixed_high: float | None
    p: float | None


def _by_judge(values: ArrayLike) -> np.ndarray:
    """Return values as (n, J)."""
    table = np.asarray(values, float)
    return table if table.ndim == 2 else table[:, None]


def _judges(by_judge: np.ndarray) -> np.ndarray | None:
    return by_judge.mean(axis=0) if by_judge.shape[1] > 1 else None


def _cells(values: np.ndarray, images: np.ndarray, pairs: ArrayLike | None) -> crossed.Cells:
    of = np.full(len(images), None) if pairs is None else np.asarray(pairs, object)
    return crossed.cells(images, of, values, np.ones(len(images)))


def score_stream(seed: int, dataset: str, composition: str) -> np.random.Generator:
    """Return the generator of a composition's bootstraps: the same for all its scores, to resample the same images."""
    return rng(seed, "interval", dataset, composition)


def estimate_score(
    values: ArrayLike, images: ArrayLike, pairs: ArrayLike | None = None, *, resamples: int = 2000,
    seed: int | np.random.Generator = 0,
) -> ScoreEstimate:  # fmt: skip
    """Estimate a score, the mean over entries of fractions such as hits, and its 95 % intervals.

    The interval over images, pairs and judges is analytic (``stats.crossed``; Owen 2007; Bell and McCaffrey 2002); the
    one over images alone is a bootstrap, for these pairs and judges.

    Args:
        values: (n,) from 0 to 1; by J judges (n, J). Entries with NaN are skipped.
        images: (n,) the image of each entry.
        pairs: (n,) the pair of each entry, None where it has none; None: no entry has one.
        resamples: of the bootstrap.
        seed: of the bootstrap, or its generator.

    Raises:
        ValueError: no entry has a value.
    """
    by_judge = _by_judge(values)
    known = ~np.isnan(by_judge).any(axis=1)
    if not known.any():
        raise ValueError("no entry has a value")
    by_judge, shown = by_judge[known], np.asarray(images, object)[known]
    means, judges = by_judge.mean(axis=1), _judges(by_judge)
    cells = _cells(means, shown, None if pairs is None else np.asarray(pairs, object)[known])
    both = crossed.estimate(cells, judges)
    fixed = interval.share(shown, means, np.ones(len(means)), resamples, np.random.default_rng(seed))
    return ScoreEstimate(both.value, both.low, both.high, fixed.low, fixed.high, crossed.components(cells, judges))


def compare_scores(
    a: ArrayLike, b: ArrayLike, images: ArrayLike, pairs: ArrayLike | None = None, *,
    b_images: ArrayLike | None = None, b_pairs: ArrayLike | None = None, limit: float = 1.0, resamples: int = 2000,
    seed: int | np.random.Generator = 0,
) -> ScoreDifference:  # fmt: skip
    """Estimate the difference of two scores, a minus b, with its 95 % intervals and its p-value.

    Args:
        a, b: (n,) values of the same entries; by J judges (n, J).
        images, pairs: (n,) as of ``estimate_score``.
        b_images, b_pairs: (m,) if ``b`` are values of other entries: the difference is then unpaired.
        limit: the greatest possible difference.
        resamples, seed: as of ``estimate_score``.
    """
    stream, shown = np.random.default_rng(seed), np.asarray(images, object)
    by_judge = [_by_judge(a), _by_judge(b)]
    if b_images is None:
        differences = by_judge[0] - by_judge[1]
        means, judges = differences.mean(axis=1), _judges(differences)
        fixed = interval.mean(shown, means, np.ones(len(means)), resamples, stream)
        cells = [_cells(means, shown, pairs)]
    else:
        means_a, means_b = (of.mean(axis=1) for of in by_judge)
        others = np.asarray(b_images, object)
        fixed = interval.unpaired_difference(shown, means_a, others, means_b, resamples, stream)
        cells = [_cells(means_a, shown, pairs), _cells(means_b, others, b_pairs)]
        judges = by_judge[0].mean(axis=0) - by_judge[1].mean(axis=0)
    both = crossed.estimate_difference(fixed.value, cells, judges, limit)
    low, high, p = (both.low, both.high, both.p) if both else (None, None, None)
    return ScoreDifference(fixed.value, low, high, fixed.low, fixed.high, p)
