"""McNemar's test against the binomial coefficients and the paper's example; Holm's procedure against its definition."""

from math import comb, erfc, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.stats.paired import holm, mcnemar

ANSWERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def _exact(b: int, c: int) -> float:
    """Twice the smaller tail of a fair coin, at most 1."""
    n = b + c
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n)


@given(ANSWERS)
def test_counts_and_tests(pairs: list[tuple[bool, bool]]) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    found = mcnemar(a, b)
    assert found.both + found.a_only + found.b_only + found.neither == len(pairs)
    assert found.a_only == sum(x and not y for x, y in pairs) and found.b_only == sum(y and not x for x, y in pairs)
    assert found.p_exact == pytest.approx(_exact(found.a_only, found.b_only), abs=1e-9)
    other = mcnemar(b, a)
    assert (other.a_only, other.p_exact) == (found.b_only, pytest.approx(found.p_exact))
    n = found.a_only + found.b_only
    if n:
        chi = (found.a_only - found.b_only) ** 2 / n
        assert found.chi_square == pytest.approx(chi)
        # The tail of chi-square with one degree of freedom is two tails of the normal distribution.
        assert found.p_chi_square == pytest.approx(erfc(sqrt(chi / 2)))
    else:
        assert (found.p_exact, found.chi_square, found.p_chi_square) == (1.0, None, None)


def _holm_rejects(p: list[float], alpha: float) -> set[int]:
    """As the procedure is told: the smallest against alpha / m, the next against alpha / (m - 1), till one stays."""
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
