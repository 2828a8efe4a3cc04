"""McNemar's test against the binomial coefficients; Holm's procedure against its definition."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.stats.paired import holm, mcnemar

ANSWERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def _exact(b: int, c: int) -> float:
    """Twice the smaller tail of a fair coin, at most 1."""
    n = b + c
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n)


@given(ANSWERS)
def test_mcnemar(pairs: list[tuple[bool, bool]]) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    expected = _exact(sum(x and not y for x, y in pairs), sum(y and not x for x, y in pairs))
    assert mcnemar(a, b) == pytest.approx(expected, abs=1e-9) and mcnemar(b, a) == pytest.approx(expected, abs=1e-9)


def _holm_rejects(p: list[float], alpha: float) -> set[int]:
    """Compare the smallest with alpha / m, the next with alpha / (m - 1), until one is not rejected."""
    rejected: set[int] = set()
    for step, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[at] > alpha / (len(p) - step):
            break
        rejected.add(at)
    return rejected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.01, 0.05, 0.2]))
def test_holm(p: list[float], alpha: float) -> None:
    adjusted = holm(p)
    # A value that is on the border may fall on either side by its last bit.
    if not any(abs(value - alpha) < 1e-12 for value in adjusted):
        assert set(np.flatnonzero(adjusted <= alpha)) == _holm_rejects(p, alpha)
    assert (adjusted >= np.array(p) - 1e-15).all() and (adjusted <= 1).all()
