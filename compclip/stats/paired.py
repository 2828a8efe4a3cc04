"""Paired tests: McNemar's exact test of two sets of answers to the same items, and Holm's
correction.
"""

from collections.abc import Sequence

import numpy as np


def mcnemar(a: np.ndarray, b: np.ndarray) -> float:
    """Return p of McNemar's exact test (1947) for two sets of right or wrong answers (n,) to the
    same items.
    """
    from scipy import stats  # slow to import

    a, b = np.asarray(a, bool), np.asarray(b, bool)
    first, second = int((a & ~b).sum()), int((b & ~a).sum())
    return float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0


def holm(values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted by Holm's procedure (1979), which rejects those below alpha."""
    p = np.asarray(values, float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(steps, 1)[np.argsort(order)]
