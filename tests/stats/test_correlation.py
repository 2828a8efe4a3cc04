"""A weighted correlation is scipy's on the resample written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compclip.stats.correlation import kendall, resample_images


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12))
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
