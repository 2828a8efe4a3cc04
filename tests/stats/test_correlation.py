"""Weighted correlations are scipy's on the resample written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compclip.stats import correlation
from compclip.stats.correlation import kendall, pearson, spearman, weight_blocks

SCIPY = {kendall: stats.kendalltau, spearman: stats.spearmanr, pearson: stats.pearsonr}
each_statistic = pytest.mark.parametrize("statistic", SCIPY)


@each_statistic
@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12))
def test_weights_are_copies(statistic, rows: list[tuple[int, int, int]]) -> None:
    x, y, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    # Resamples of other lengths in the same block change nothing.
    value, _, whole = statistic(x, y, np.stack([weights, 2 * weights, np.ones(len(x))]))
    for result, copies in ((value, weights.astype(int)), (whole, np.ones(len(x), int))):
        long_x, long_y = np.repeat(x, copies), np.repeat(y, copies)
        if len(np.unique(long_x)) < 2 or len(np.unique(long_y)) < 2:
            assert np.isnan(result)
        else:
            assert result == pytest.approx(SCIPY[statistic](long_x, long_y)[0], abs=1e-9)


@each_statistic
def test_values_of_each_resample(statistic) -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 5, (2, 7, 9)).astype(float)
    present = (random.random((7, 9)) < 0.8).astype(float)
    for row, value in enumerate(statistic(x, y, present)):
        kept = present[row] > 0
        assert value == pytest.approx(SCIPY[statistic](x[row][kept], y[row][kept])[0], abs=1e-9)


def test_all_entries_of_an_image_are_resampled_together_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.array(["a", "b", "a", "c", "b"])
    (weights,) = weight_blocks(images, 299, np.random.default_rng(0))
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert weights.mean() == pytest.approx(1, abs=0.1)
    monkeypatch.setattr(correlation, "CELLS", 23)
    blocks = list(weight_blocks(images, 299, np.random.default_rng(0)))
    assert [len(block) for block in blocks] == [4] * 74 + [3] and np.array_equal(np.vstack(blocks), weights)
