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

    a = np.asarray(a, bool)
    b = np.asarray(b, bool)
    # Items that both answer alike tell nothing about the difference.
    only_a = int((a & ~b).sum())
    discordant = int((a != b).sum())
    if discordant == 0:
        return 1.0
    return float(stats.binomtest(only_a, discordant).pvalue)


def holm(values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted by Holm's procedure (1979), which rejects those below alpha."""
    p = np.asarray(values, float)
    order = np.argsort(p, kind="stable")
    # The smallest p-value is multiplied by the number of tests, the next by one less, and so on.
    factors = np.arange(len(p), 0, -1)
    # A larger p-value is not rejected before a smaller one.
    multiplied = p[order] * factors
    adjusted = np.maximum.accumulate(multiplied)
    adjusted = np.minimum(adjusted, 1)
    return adjusted[np.argsort(order)]
