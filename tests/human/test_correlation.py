"""Weighted correlations are scipy's on the resample written out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from workflow_scripts.human import correlation
from workflow_scripts.human.correlation import (
    STATISTICS,
    compare,
    concordance,
    image_weights,
    kendall,
    pearson,
    ranks,
    signs,
    spearman,
    weight_blocks,
)

SCIPY = {"kendall": stats.kendalltau, "spearman": stats.spearmanr, "point_biserial": stats.pearsonr}
OURS = {"kendall": kendall, "spearman": spearman, "point_biserial": pearson}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12),
    st.sampled_from(STATISTICS),
)
def test_weights_are_copies(rows: list[tuple[int, int, int]], statistic: str) -> None:
    x, y, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    found = OURS[statistic](x, y, weights[None]) if weights.sum() else np.array([np.nan])
    copies = weights.astype(int)
    long_x, long_y = np.repeat(x, copies), np.repeat(y, copies)
    if len(np.unique(long_x)) < 2 or len(np.unique(long_y)) < 2:
        assert np.isnan(found[0])
    else:
        assert found[0] == pytest.approx(SCIPY[statistic](long_x, long_y)[0], abs=1e-9)


@given(st.data(), st.integers(1, 30), st.integers(1, 40), st.integers(1, 40))
def test_sums_over_all_pairs_are_those_of_matrices(data: st.DataObject, n: int, some: int, more: int) -> None:
    x, y = (np.array(data.draw(st.lists(st.integers(0, k), min_size=n, max_size=n)), float) / 7 for k in (some, more))
    weights = np.random.default_rng(n).integers(0, 4, (3, n)).astype(float)
    of_x, of_y = signs(np.stack([x, y]))
    expected = [weight @ (of_x * of_y) @ weight for weight in weights]
    assert concordance(x, y, weights).tolist() == concordance(y, x, weights).tolist() == expected
    assert ranks(x, weights).tolist() == (weights @ of_x.T).tolist() == ranks(np.stack([x] * 3), weights).tolist()


def test_resamples_in_blocks_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.array(["a", "b", "a", "c", "b"])
    whole = image_weights(images, 23, np.random.default_rng(0))
    monkeypatch.setattr(correlation, "CELLS", 23)
    blocks = list(weight_blocks(images, 23, np.random.default_rng(0)))
    assert [len(block) for block in blocks] == [4] * 5 + [3] and np.array_equal(np.vstack(blocks), whole)
    assert image_weights(images, 0, np.random.default_rng(0)).shape == (0, 5)


@pytest.mark.parametrize("statistic", ["kendall", "spearman"])
def test_values_of_each_resample(statistic: str) -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 5, (2, 7, 9)).astype(float)
    there = (random.random((7, 9)) < 0.8).astype(float)
    found = OURS[statistic](x, y, there)
    for row in range(7):
        kept = there[row] > 0
        assert found[row] == pytest.approx(SCIPY[statistic](x[row][kept], y[row][kept])[0], abs=1e-9)


def test_point_biserial_is_scipys() -> None:
    random = np.random.default_rng(1)
    x, said = random.random(50), random.integers(0, 2, 50)
    assert pearson(x, said.astype(float), np.ones((1, 50)))[0] == pytest.approx(stats.pointbiserialr(said, x)[0])


def test_images_come_and_go_together() -> None:
    images = np.array(["a", "b", "a", "c", "b"])
    weights = image_weights(images, 300, np.random.default_rng(0))
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert weights.mean() == pytest.approx(1, abs=0.1)


def _entries(n: int, random: np.random.Generator) -> pd.DataFrame:
    score = np.round(random.random(n), 6)
    share = random.binomial(3, score) / 3
    majority = np.where(share == 0.5, np.nan, share > 0.5)
    cells = [f"c{i % 4}" for i in range(n)]
    return pd.DataFrame(
        {
            "image_id": [str(i // 2) for i in range(n)],
            "cell": cells,
            "score": score,
            "share": share,
            "majority": majority,
        }
    )


def test_compare_says_what_scipy_says() -> None:
    entries = _entries(80, np.random.default_rng(2))
    rows = {(r["level"], r["statistic"]): r for r in compare(entries, 500, np.random.default_rng(0))}
    assert rows["image", "kendall"]["value"] == pytest.approx(stats.kendalltau(entries["score"], entries["share"])[0])
    assert rows["image", "spearman"]["value"] == pytest.approx(stats.spearmanr(entries["score"], entries["share"])[0])
    biserial = stats.pointbiserialr(entries["majority"], entries["score"])[0]
    assert rows["image", "point_biserial"]["value"] == pytest.approx(biserial)
    means = entries.groupby("cell")[["score", "share"]].mean()
    cells = rows["generator and split", "kendall"]
    assert cells["value"] == pytest.approx(stats.kendalltau(means["score"], means["share"])[0]) and cells["n"] == 4
    for row in rows.values():
        assert row["low"] <= row["value"] <= row["high"] and row["images"] == 40


def test_a_mirrored_entry_does_not_depend_on_its_side() -> None:
    random = np.random.default_rng(3)
    entries = _entries(40, random).assign(score=lambda t: t["score"] - 0.5)
    side = random.random(40) < 0.5
    turned = entries.assign(
        score=np.where(side, -entries["score"], entries["score"]),
        share=np.where(side, 1 - entries["share"], entries["share"]),
        majority=np.where(side, 1 - entries["majority"], entries["majority"]),
    )
    one, other = (compare(e, 100, np.random.default_rng(0), mirrored=True) for e in (entries, turned))
    assert [r["statistic"] for r in one] == list(STATISTICS)
    for a, b in zip(one, other, strict=True):
        assert [a[k] for k in ("value", "low", "high")] == pytest.approx([b[k] for k in ("value", "low", "high")])
        assert a["n"] == 40


def test_what_does_not_vary_has_no_correlation() -> None:
    entries = _entries(10, np.random.default_rng(4)).assign(score=0.5)
    assert all(row["value"] is None and row["low"] is None for row in compare(entries, 100, np.random.default_rng(0)))
    assert compare(entries.head(1), 100, np.random.default_rng(0)) == []


def test_two_images_have_no_interval() -> None:
    """Half of their resamples are of one image, and have no correlation."""
    rows = compare(_entries(4, np.random.default_rng(3)), 500, np.random.default_rng(0))
    told = {row["statistic"]: (row["low"], row["high"]) for row in rows if row["level"] == "image"}
    assert rows[0]["value"] is not None and set(told.values()) == {(None, None)}


def test_interval_covers_the_truth() -> None:
    """Of 40 studies of images from one world, the 95 % interval misses that world's correlation in a few."""
    random = np.random.default_rng(5)
    truth = stats.kendalltau(*_entries(40_000, random)[["score", "share"]].to_numpy().T)[0]
    hits = 0
    for _ in range(40):
        rows = compare(_entries(60, random), 150, random)
        hits += rows[0]["low"] <= truth <= rows[0]["high"]
    assert hits >= 34
