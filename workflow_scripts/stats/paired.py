"""Paired tests: McNemar's test of two sets of answers to the same items, and Holm's correction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class McNemar:
    """The numbers of items that both, only one, or none has right, and the result of McNemar's test."""

    both: int
    a_only: int
    b_only: int
    neither: int
    p_exact: float  # of the binomial test
    chi_square: float | None  # without continuity correction; None if a and b differ on no item
    p_chi_square: float | None  # likewise


def mcnemar(a: np.ndarray, b: np.ndarray) -> McNemar:
    """Test whether two sets of answers (n,) to the same items are right equally often (McNemar 1947)."""
    from scipy import stats  # slow to import

    a, b = np.asarray(a, bool), np.asarray(b, bool)
    first, second = int((a & ~b).sum()), int((b & ~a).sum())
    counts = int((a & b).sum()), first, second, int((~a & ~b).sum())
    if first + second == 0:
        return McNemar(*counts, 1.0, None, None)
    exact = stats.binomtest(first, first + second).pvalue
    chi = stats.chisquare([first, second])
    return McNemar(*counts, float(exact), float(chi.statistic), float(chi.pvalue))


def holm(values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted by Holm's procedure (1979), which rejects those below alpha."""
    p = np.asarray(values, float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1)
    return adjusted
