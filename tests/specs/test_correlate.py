"""Correlations of scores with ratings against scipy, and the table that they are read from."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.specs import correlate
from compclip.specs.correlate import correlations
from tests.specs.evaluated import refused

SCIPY = {"kendall": stats.kendalltau, "spearman": stats.spearmanr, "pearson": stats.pearsonr}


def world(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images with three captions each, scores with ties, and correlated ratings in four steps."""
    random = np.random.default_rng(seed)
    scores = np.round(random.random(n), 2)
    ratings = np.clip((scores * 3 + random.normal(size=n)).round(), 0, 3)
    return np.array([f"i{i // 3}" for i in range(n)]), scores, ratings


def test_values_equal_scipy() -> None:
    images, scores, ratings = world(150, 0)
    found = correlations(images, scores, ratings, 200, 0)
    for name, theirs in SCIPY.items():
        assert found[name]["value"] == pytest.approx(theirs(scores, ratings)[0], abs=1e-6)
        assert found[name]["low"] < found[name]["value"] < found[name]["high"]
        assert (found[name]["n"], found[name]["images"]) == (150, 50)


def test_undefined_values_are_none() -> None:
    images, scores, ratings = world(12, 3)
    assert correlations(images, scores, np.ones(12), 50, 0)["pearson"]["value"] is None
    alone = correlations(np.repeat("i", 12), scores, ratings, 50, 0)["kendall"]
    assert alone["value"] is not None and alone["low"] is None
    assert correlations(images[:1], scores[:1], ratings[:1], 50, 0)["spearman"]["value"] is None


def test_the_step(tmp_path: Path) -> None:
    """On a table as ``specs.score`` writes it, of which two rows lack a score or a rating."""
    images, scores, ratings = world(30, 4)
    table = pd.DataFrame({"image": images, "text": "a", "rating": ratings, "specs": scores, "status": "ok"})
    lacking = pd.DataFrame({"image": ["x", "y"], "rating": ["good", 3], "specs": [0.5, None]})
    pd.concat([table, lacking]).to_csv(tmp_path / "s.csv", index=False)
    step = correlate.Correlate(scores=tmp_path / "s.csv", bootstrap=100, output=tmp_path / "r.json")
    correlate.main(step)
    result = json.loads(step.output.read_text())
    assert result["kendall"]["value"] == pytest.approx(stats.kendalltau(scores, ratings)[0], abs=1e-6)
    assert (result["left_out"], result["pearson"]["n"], result["pearson"]["images"]) == (2, 30, 10)
    lacking.to_csv(tmp_path / "s.csv", index=False)
    assert "no row with a score and a rating" in refused(lambda: correlate.main(step))
    table.drop(columns="rating").to_csv(tmp_path / "s.csv", index=False)
    assert "no column rating" in refused(lambda: correlate.main(step))
