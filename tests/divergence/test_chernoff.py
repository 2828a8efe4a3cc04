"""The Chernoff coefficient and the divergence: the walk-through's numbers by hand, and the bounds as properties."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.divergence.chernoff import ATOMS_ALPHA, chernoff, divergence

TRAIN, TEST = (0.001, 0.001, 0.998, 0), (0.4, 0.4, 0, 0.2)

weights = st.floats(0, 1e6).map(lambda x: 0.0 if x < 1e-6 else x)
alphas = st.floats(0.01, 0.99)


@st.composite
def sides(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 8))
    train, test = (np.array(draw(st.lists(weights, min_size=n, max_size=n))) for _ in range(2))
    assume(train.sum() > 0 and test.sum() > 0)
    return train, test


def test_the_walk_through() -> None:
    assert chernoff(TRAIN, TEST, 0.1) == pytest.approx(2 * 0.001**0.1 * 0.4**0.9)
    assert round(chernoff(TRAIN, TEST, 0.1), 2) == 0.44
    assert round(chernoff(TRAIN, TEST, 0.5), 2) == 0.04
    assert divergence(TRAIN, TEST, 0.1) == pytest.approx(1 - 0.4395, abs=1e-4)


@given(sides(), alphas)
def test_as_a_sum_over_items(pair: tuple[np.ndarray, np.ndarray], alpha: float) -> None:
    train, test = pair
    terms = ((t / train.sum()) ** alpha * (s / test.sum()) ** (1 - alpha) for t, s in zip(train, test, strict=True))
    assert divergence(train, test, alpha) == pytest.approx(1 - math.fsum(terms), abs=1e-12)
    assert 0 <= divergence(train, test, alpha) <= 1


@pytest.mark.parametrize(
    ("train", "test", "side"), [([0, 0], [1, 0], "train"), ([1, 0], [0, 0], "test"), ([], [], "train")]
)
def test_an_empty_side(train: list[float], test: list[float], side: str) -> None:
    with pytest.raises(UserError, match=f"^{side} "):
        divergence(train, test, ATOMS_ALPHA)
