"""Hubness against a count."""

import numpy as np
import pytest

from compclip.score.entries import Numbered
from compclip.score.score_images import Nearest
from compclip.stats.r_precision import Entries, blocks, make_pool


def test_hubness_by_hand() -> None:
    # Texts and images of three classes in turn; image 0 has caption 0, and so on.
    pool, classes = make_pool(np.arange(150), np.arange(150) % 3, np.arange(150)), np.array([0, 1, 2, 0])
    numbered = Numbered(Entries(np.arange(4), classes, []), pool, [])

    def hubness(values: np.ndarray, rows: slice = slice(None)) -> float | None:
        nearest = Nearest(150, numbered)
        for chosen, block in blocks(lambda rows: values[rows], classes):
            before = block.copy()
            nearest.add(chosen, block)
            assert (block == before).all(), "other measures read the same block"
        return nearest.hubness(np.arange(4)[rows])

    values = np.zeros((4, 150))
    values[:, 149] = 1.0  # a hub, of class 2
    values[[0, 1, 2, 3], [0, 1, 2, 3]] = 0.5
    values[3, 3], values[0, 7] = 2.0, 1.5
    # Image 0 ranks caption 7 first, image 1 the hub, image 2 is of the hub's class, image 3 is right: one of two wrong
    # first ranks is the hub's, but of 150 captions two are the most frequent 1 %.
    assert hubness(values) == 1.0
    values[2, 10] = values[1, 11] = 3.0
    assert hubness(values) == pytest.approx(2 / 3)
    assert hubness(values, slice(2)) == 1.0
    assert hubness(np.eye(4, 150)) is None
