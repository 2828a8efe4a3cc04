"""Scores and their differences with both intervals: for the same pairs and judges, and for new
ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from compclip.core.errors import require
from compclip.core.settings.arguments import (
    Differences,
    Ends,
    Fractions,
    MaybeNames,
    Names,
    require_length,
)
from compclip.core.settings.calls import checked
from compclip.stats import crossed
from compclip.stats.interval import Estimate


@dataclass(frozen=True)
class TwoIntervals:
    """A value with two 95 % intervals: *same pairs* resamples images alone, *new pairs* also pairs
    and judges.

    Its text shows the interval for new pairs.
    """

    value: float
    same_pairs_low: float | None
    same_pairs_high: float | None
    new_pairs_low: float | None
    new_pairs_high: float | None

    def __str__(self) -> str:
        return str(Estimate(self.value, self.new_pairs_low, self.new_pairs_high))


INTERVAL_COLUMNS = ("same_pairs_low", "same_pairs_high", "new_pairs_low", "new_pairs_high")


@dataclass(frozen=True)
class ScoreEstimate(TwoIntervals):
    """A score with its variance components."""

    components: crossed.Components


@dataclass(frozen=True)
class ScoreDifference(TwoIntervals):
    """A difference of scores with its p-value against 0."""

    p: float | None


def _by_judge(values: ArrayLike) -> np.ndarray:
    """Return values as (n, J)."""
    table = np.asarray(values, float)
    return table if table.ndim == 2 else table[:, None]


def _cells(
    by_judge: np.ndarray,
    images: ArrayLike,
    pairs: ArrayLike | None,
    has_value: np.ndarray | bool = True,
) -> crossed.Cells:
    """Return the cells of the means over judges of entries that have a value."""
    n = len(by_judge)
    if pairs is None:
        pairs = np.full(n, None)
    weights = np.full(n, has_value, float)
    return crossed.make_cells(images, pairs, by_judge.mean(axis=1), weights)


@checked
def estimate_score(
    values: Fractions, images: Names, pairs: MaybeNames | None = None
) -> ScoreEstimate:
    """Estimate a score, the mean over entries of fractions such as hits, and its 95 % intervals.

    *New pairs* covers other pairs and judges, *same pairs* other images of these pairs and judges
    (docs/intervals.md).

    Args:
        values: (n,) from 0 to 1; by J judges (n, J). Entries with NaN are skipped.
        images: (n,) the image of each entry, or the class of its image, if images have classes.
        pairs: (n,) the pair of each entry, None where it has none; None: no entry has one.

    Raises:
        UserError: no entry has a value, or an argument is refused (docs/library.md).
    """
    by_judge = _by_judge(values)
    require_length(len(by_judge), "values", images=images, pairs=pairs)
    return estimate_values(by_judge, images, pairs)


def estimate_values(
    by_judge: np.ndarray, images: ArrayLike, pairs: ArrayLike | None = None
) -> ScoreEstimate:
    """Return what ``estimate_score`` does, of values (n, J) of a run, which need no check."""
    # An entry counts for all judges or for none, so that judges score the same entries.
    has_value = ~np.isnan(by_judge).any(axis=1)
    require(has_value.any(), "values", "no entry has a value")
    cells = _cells(by_judge, images, pairs, has_value)
    judges = by_judge[has_value].mean(axis=0)
    new_pairs = crossed.estimate(cells, judges)
    same_pairs = crossed.estimate_within(cells)
    return ScoreEstimate(
        value=new_pairs.value,
        same_pairs_low=same_pairs.low,
        same_pairs_high=same_pairs.high,
        new_pairs_low=new_pairs.low,
        new_pairs_high=new_pairs.high,
        components=crossed.components(cells, judges),
    )


@checked
def compare_scores(
    a: Differences,
    b: Differences,
    images: Names,
    pairs: MaybeNames | None = None,
    *,
    b_images: Names | None = None,
    b_pairs: MaybeNames | None = None,
    ends: Ends | None = None,
) -> ScoreDifference:
    """Estimate the difference of two scores, a minus b, with its 95 % intervals and its p-value.

    Args:
        a, b: (n,) values of the same entries; by J judges (n, J).
        images, pairs: (n,) as of ``estimate_score``.
        b_images, b_pairs: (m,) if ``b`` are values of other entries: the difference is then
            unpaired.
        ends: the smallest and the largest difference that an unsampled pair can have. None: minus
            the mean of b, and the mean of a; if the values are differences themselves, state the
            possible range.

    Raises:
        UserError: an argument is refused (docs/library.md).
    """
    a_values = _by_judge(a)
    b_values = _by_judge(b)
    judges = a_values.shape[1]
    fault = f"expected {judges} judges, as of a, got {b_values.shape[1]}"
    require(b_values.shape[1] == judges, "b", fault)
    is_fraction = min(a_values.min(), b_values.min()) >= 0
    remedy = "give the range of a difference"
    require(is_fraction or ends, "ends", "required for values below 0", remedy)
    require_length(len(a_values), "values of a", images=images, pairs=pairs)
    b_length = len(a_values) if b_images is None else len(b_values)
    require_length(b_length, "values", b=b_values, b_images=b_images, b_pairs=b_pairs)
    value = float(a_values.mean() - b_values.mean())
    by_judge = a_values.mean(axis=0) - b_values.mean(axis=0)
    if b_images is None:
        terms = [_cells(a_values - b_values, images, pairs)]
        # In an unsampled pair, all of b can be lost, or b can have nothing of a.
        ends = ends or (-float(b_values.mean()), float(a_values.mean()))
    else:
        terms = [_cells(a_values, images, pairs), _cells(b_values, b_images, b_pairs)]
        ends = ends or (0.0, 1.0)
    new_pairs = crossed.estimate_difference(value, terms, by_judge, ends)
    same_pairs = Estimate(value, None, None)
    if min(cells.n_images for cells in terms) >= 2:
        no_variance = crossed.judge_variance(None)
        variance = sum((crossed.variance_within(cells) for cells in terms), no_variance)
        same_pairs = crossed.difference(value, variance)
    return ScoreDifference(
        value=value,
        same_pairs_low=same_pairs.low,
        same_pairs_high=same_pairs.high,
        new_pairs_low=new_pairs.low,
        new_pairs_high=new_pairs.high,
        p=new_pairs.p,
    )
