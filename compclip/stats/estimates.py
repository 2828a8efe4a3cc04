"""Scores and their differences with both intervals: for the same pairs and judges, and for new
ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from compclip.core.errors import require
from compclip.core.inputs import (
    Differences,
    Ends,
    Fractions,
    MaybeNames,
    Names,
    checked,
    require_length,
)
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


ENDS = ("same_pairs_low", "same_pairs_high", "new_pairs_low", "new_pairs_high")


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
    known: np.ndarray | bool = True,
) -> crossed.Cells:
    """Return the cells of the means over judges of entries with a ``known`` value."""
    n = len(by_judge)
    of_pairs = np.full(n, None) if pairs is None else pairs
    return crossed.cells(images, of_pairs, by_judge.mean(axis=1), np.full(n, known, float))


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
    known = ~np.isnan(by_judge).any(axis=1)
    require_length(len(known), "values", images=images, pairs=pairs)
    require(known.any(), "values", "no entry has a value")
    cells, judges = _cells(by_judge, images, pairs, known), by_judge[known].mean(axis=0)
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
    of_a, of_b = _by_judge(a), _by_judge(b)
    require(
        of_a.shape[1] == of_b.shape[1],
        "b",
        f"expected {of_a.shape[1]} judges, as of a, got {of_b.shape[1]}",
    )
    is_fraction = min(of_a.min(), of_b.min()) >= 0
    require(
        is_fraction or ends, "ends", "required for values below 0", "give the range of a difference"
    )
    require_length(len(of_a), "values of a", images=images, pairs=pairs)
    require_length(
        len(of_a) if b_images is None else len(of_b),
        "values",
        b=of_b,
        b_images=b_images,
        b_pairs=b_pairs,
    )
    value, judges = float(of_a.mean() - of_b.mean()), of_a.mean(axis=0) - of_b.mean(axis=0)
    if b_images is None:
        cells = [_cells(of_a - of_b, images, pairs)]
        ends = ends or (-float(of_b.mean()), float(of_a.mean()))
    else:
        cells = [_cells(of_a, images, pairs), _cells(of_b, b_images, b_pairs)]
    new_pairs = crossed.estimate_difference(value, cells, judges, ends or (0.0, 1.0))
    same_pairs = Estimate(value, None, None)
    if min(of.images for of in cells) >= 2:
        variance = sum((crossed.variance_within(of) for of in cells), crossed.of_judges(None))
        same_pairs = crossed.difference(value, variance)
    return ScoreDifference(
        value=value,
        same_pairs_low=same_pairs.low,
        same_pairs_high=same_pairs.high,
        new_pairs_low=new_pairs.low,
        new_pairs_high=new_pairs.high,
        p=new_pairs.p,
    )
