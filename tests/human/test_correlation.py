"""Correlations of scores with answers equal scipy's, and their intervals cover the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.human.correlation import STATISTICS, compare


def _entries(n: int, random: np.random.Generator) -> pd.DataFrame:
    score = np.round(random.random(n), 6)
    share = random.binomial(3, score) / 3
    majority = np.where(share == 0.5, np.nan, share > 0.5)
    names = {"image_id": [str(i // 2) for i in range(n)], "cell": [f"c{i % 4}" for i in range(n)]}
    return pd.DataFrame({**names, "score": score, "share": share, "majority": majority})


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
