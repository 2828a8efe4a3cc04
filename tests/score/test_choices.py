"""Adjective accuracy, by hand."""

import numpy as np

from compclip.score.choices import adjective_accuracy, gathered


def test_ties_count_fractionally_and_one_better_variant_is_a_miss() -> None:
    own = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    #          first | one of two ties | tied with two | one better, one tied | no variant
    entry = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    of_variants = np.array([0.1, 0.4, 0.5, 0.4, 0.5, 0.5, 0.6, 0.5])
    found = adjective_accuracy(own, of_variants, entry)
    assert found.adjectives.tolist() == [3, 3, 3, 3, 1]
    np.testing.assert_array_equal(found.first, [1, 1 / 2, 1 / 3, 0, np.nan])
    np.testing.assert_array_equal(found.two_way, [1, 3 / 4, 1 / 2, 1 / 4, np.nan])


def test_gathered_cosines_are_those_of_the_whole_product() -> None:
    random = np.random.default_rng(0)
    images, texts = random.standard_normal((7, 5)), random.standard_normal((9, 5))
    image, text = random.integers(0, 7, 3000), random.integers(0, 9, 3000)
    np.testing.assert_allclose(gathered(images, texts)(image, text), (images @ texts.T)[image, text])
