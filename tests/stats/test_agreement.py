"""Krippendorff's alpha, weighted correlations, McNemar's test and Holm's procedure, against
independent values.
"""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compclip.stats.agreement import agreement, alpha, kendall, resample_images
from compclip.stats.paired import holm, mcnemar


def test_alpha_by_hand_and_of_people_who_agree_or_toss_coins() -> None:
    """Of three tasks with two answers each, two agree; of two random answers of these six, 18 of 30
    differ.
    """
    assert alpha(np.array([[2, 0], [0, 2], [1, 1]])) == pytest.approx(1 - (1 / 3) / (18 / 30))
    assert alpha(np.array([[3, 0], [2, 0]])) is None
    assert alpha(np.array([[1, 0], [0, 1]])) is None
    assert alpha(np.zeros((0, 2), int)) is None
    random = np.random.default_rng(0)
    images = np.arange(60).astype(str)
    ones = 4 * random.integers(0, 2, 60)
    assert agreement(np.stack([ones, 4 - ones], axis=1), images, 200, random)["alpha"] == 1
    ones = random.binomial(4, 0.5, 60)
    coins = agreement(np.stack([ones, 4 - ones], axis=1), images, 200, random)
    assert coins["low"] < 0 < coins["high"] and abs(coins["alpha"]) < 0.15 and coins["tasks"] == 60
    single = agreement(np.stack([ones > 2, ones <= 2], axis=1).astype(int), images, 200, random)
    assert single["alpha"] is None and single["tasks"] == 0


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12
    )
)
def test_weights_are_copies(rows: list[tuple[int, int, int]]) -> None:
    x, y, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    # Another resample beside changes nothing.
    value, whole = kendall(x, y, np.stack([weights, np.ones(len(x))]))
    for result, copies in ((value, weights.astype(int)), (whole, np.ones(len(x), int))):
        long_x, long_y = np.repeat(x, copies), np.repeat(y, copies)
        if len(np.unique(long_x)) < 2 or len(np.unique(long_y)) < 2:
            assert np.isnan(result)
        else:
            assert result == pytest.approx(stats.kendalltau(long_x, long_y)[0], abs=1e-9)


def test_all_entries_of_an_image_are_resampled_together() -> None:
    weights = resample_images(np.array(["a", "b", "a", "c", "b"]), 299, np.random.default_rng(0))
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert weights.mean() == pytest.approx(1, abs=0.1)


ANSWERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def _exact(b: int, c: int) -> float:
    """Twice the smaller tail of a fair coin, at most 1."""
    n = b + c
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n)


@given(ANSWERS)
def test_mcnemar(pairs: list[tuple[bool, bool]]) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    expected = _exact(sum(x and not y for x, y in pairs), sum(y and not x for x, y in pairs))
    assert mcnemar(a, b) == pytest.approx(expected, abs=1e-9) and mcnemar(b, a) == pytest.approx(
        expected, abs=1e-9
    )


def _holm_rejects(p: list[float], alpha: float) -> set[int]:
    """Compare the smallest with alpha / m, the next with alpha / (m - 1), until one is not
    rejected.
    """
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
