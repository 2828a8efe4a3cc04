"""Krippendorff's alpha of published and worked examples, and its interval."""

import numpy as np
import pytest

from compclip.stats.agreement import agreement, alpha

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers, twelve units.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def test_alpha_of_the_published_example() -> None:
    counts = np.array([[sum(row[u] == v for row in PUBLISHED) for v in range(1, 6)] for u in range(12)])
    assert alpha(counts) == pytest.approx(0.743, abs=5e-4)


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
