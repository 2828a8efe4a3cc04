"""Compiled loops; imported where they run, because numba takes a quarter of a second to import."""

import numpy as np
from numba import njit


# Weights are integers, whose sums are exact in any order, so the compiler may vectorize them.
@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def sum_better(
    values: np.ndarray, own: np.ndarray, weights: np.ndarray, better: np.ndarray, equal: np.ndarray
) -> None:
    """Sum the ``weights`` (k,) of each row of ``values`` (n, k) where it exceeds ``own`` (n,), and
    where it equals it.

    A comparison with NaN is false: such a value counts as better, so NaN loses.

    The sums are written to ``better`` and ``equal`` (n,).
    """
    for row in range(len(values)):
        # Of the weights' type, so that the sums stay in it.
        zero = weights.dtype.type(0)
        above = zero
        same = zero
        own_value = own[row]
        for column in range(len(weights)):
            value = values[row, column]
            weight = weights[column]
            above += zero if value <= own_value else weight
            same += weight if value == own_value else zero
        better[row] = above
        equal[row] = same
