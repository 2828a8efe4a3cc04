"""Correlations of scores with ratings against scipy, and the table that they are read from."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.score.world import FakeJudge
from tests.specs.evaluated import drawn, picture, real_judge, refused, run
from workflow_scripts.specs import correlate
from workflow_scripts.specs.correlate import correlations, read_ratings

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


def test_intervals_equal_a_plain_bootstrap() -> None:
    images, scores, ratings = world(90, 1)
    found = correlations(images, scores, ratings, 2000, 0)
    random = np.random.default_rng(9)
    rows = np.arange(90).reshape(30, 3)
    draws = []
    for _ in range(1000):
        chosen = rows[random.integers(30, size=30)].ravel()
        draws.append([statistic(scores[chosen], ratings[chosen])[0] for statistic in SCIPY.values()])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    for place, name in enumerate(SCIPY):
        assert [found[name]["low"], found[name]["high"]] == pytest.approx([low[place], high[place]], abs=0.03)


def test_the_order_of_rows_does_not_matter() -> None:
    images, scores, ratings = world(60, 2)
    order = np.random.default_rng(0).permutation(60)
    one = correlations(images, scores, ratings, 100, 0)
    assert correlations(images[order], scores[order], ratings[order], 100, 0) == one
    assert correlations(images, scores, ratings, 100, 1)["kendall"]["low"] != one["kendall"]["low"]


def test_undefined_values_are_none() -> None:
    images, scores, ratings = world(12, 3)
    assert correlations(images, scores, np.ones(12), 50, 0)["pearson"]["value"] is None
    alone = correlations(np.repeat("i", 12), scores, ratings, 50, 0)["kendall"]
    assert alone["value"] is not None and alone["low"] is None
    assert correlations(images[:1], scores[:1], ratings[:1], 50, 0)["spearman"]["value"] is None


TEXTS = ["red wing", "red bill", "green tail", "blue wing black", "black"]


def write(folder: Path) -> Path:
    rows = ["image,caption,rating"]
    for image, shown in enumerate(["red wing blue bill", "green tail wing", "black wing"]):
        drawn(folder / f"{image}.png", shown)
        rows += [f"{image}.png,{text},{(image + 2 * n) % 4}" for n, text in enumerate(TEXTS)]
    (folder / "r.csv").write_text("\n".join(rows))
    return folder / "r.csv"


def test_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, judge = run(correlate, tmp_path, data=write(tmp_path), monkeypatch=monkeypatch)
    cosines, ratings = [], []
    for image, shown in enumerate(["red wing blue bill", "green tail wing", "black wing"]):
        cosines += [FakeJudge.embed(shown) @ FakeJudge.embed(text) for text in TEXTS]
        ratings += [(image + 2 * n) % 4 for n in range(len(TEXTS))]
    assert found["kendall"]["value"] == pytest.approx(stats.kendalltau(cosines, ratings)[0], abs=1e-6)
    assert found["pearson"]["value"] == pytest.approx(stats.pearsonr(cosines, ratings)[0], abs=1e-5)
    assert found["kendall"]["n"] == 15 and found["kendall"]["images"] == 3 and found["left_out"] == {}
    assert sorted(judge.texts_seen) == sorted(TEXTS)


def test_bad_rows_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text() + "\n1.png, ,3\n1.png,red,good\n,red,1\n0.png,red\n9.png,red,1\n9.png,blue,2\n")
    found, _ = run(correlate, tmp_path, data=path, monkeypatch=monkeypatch)
    assert {reason: left["names"] for reason, left in found["left_out"].items()} == {
        "rows that cannot be read": ["line 20: 2 values, the header has 3 columns"],
        "rows without an image": ["line 19"],
        "captions empty": ["line 17"],
        "ratings that are no number": ["line 18"],
        "images missing": ["9.png"],
    }
    assert found["kendall"]["n"] == 15
    path.write_text("image,caption,rating\n9.png,red,1\n")
    assert "none of its images can be read" in refused(
        lambda: run(correlate, tmp_path, data=path, monkeypatch=monkeypatch)
    )
    path.write_text("image,caption,rating\n")
    assert "no row with an image" in refused(lambda: run(correlate, tmp_path, data=path, monkeypatch=monkeypatch))
    path.write_text("image,caption\n")
    assert "no column 'rating'" in refused(lambda: read_ratings(path, None))


def test_unreadable_images_and_long_captions(tmp_path: Path) -> None:
    for number, color in enumerate([(200, 30, 30), (20, 90, 200), (10, 200, 90)]):
        picture(tmp_path / f"{number}.png", color)
    (tmp_path / "3.png").write_text("no image")
    long = "red wing with a blue bill and a green tail"
    rows = [f"{image}.png,{text},{image}" for image in range(4) for text in ("red wing", long)]
    (tmp_path / "r.csv").write_text("\n".join(["image,caption,rating", *rows]))
    found, _ = run(correlate, tmp_path, data=tmp_path / "r.csv", judge=real_judge(tmp_path / "judge"))
    assert found["left_out"] == {"images unreadable": {"count": 1, "names": ["3.png"]}}
    assert found["kendall"]["n"] == 6 and found["captions_cut"] == 3
    assert str(tmp_path) not in json.dumps(found)
