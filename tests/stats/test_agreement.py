"""Krippendorff's alpha by hand, and its interval."""

import numpy as np
import pytest

from compclip.stats.agreement import agreement, alpha


def test_alpha_by_hand() -> None:
    """Of three tasks with two answers each, two agree; of two random answers of these six, 18 of 30 differ."""
    assert alpha(np.array([[2, 0], [0, 2], [1, 1]])) == pytest.approx(1 - (1 / 3) / (18 / 30))


def test_alpha_is_undefined_if_all_answers_are_equal() -> None:
    assert alpha(np.array([[3, 0], [2, 0]])) is None
    assert alpha(np.array([[1, 0], [0, 1]])) is None
    assert alpha(np.zeros((0, 2), int)) is None


def test_agreement_of_people_who_agree_and_of_coins() -> None:
    random = np.random.default_rng(0)
    images = np.arange(60).astype(str)
    ones = 4 * random.integers(0, 2, 60)
    assert agreement(np.stack([ones, 4 - ones], axis=1), images, 200, random)["alpha"] == 1
    ones = random.binomial(4, 0.5, 60)
    coins = agreement(np.stack([ones, 4 - ones], axis=1), images, 200, random)
    assert coins["low"] < 0 < coins["high"] and abs(coins["alpha"]) < 0.15 and coins["tasks"] == 60
    single = agreement(np.stack([ones > 2, ones <= 2], axis=1).astype(int), images, 200, random)
    assert single["alpha"] is None and single["tasks"] == 0
