"""Released ratings are read as documented, and correlations and agreement equal independent
values.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.human.ratings import (
    RATING_COLUMNS,
    check_ratings,
    correlate_with_people,
    read_scores,
    read_tifa_ratings,
    read_worker_ratings,
    spearman,
    worker_agreement,
)

VALUES = st.integers(0, 5)
WORKERS = """data_type,model_type,item_id,source_id,worker_id,question,answer
tifa160,mini-dalle,tifa160_0,coco_1,7,How consistent?,3
tifa160,mini-dalle,tifa160_0,coco_1,8,How consistent?,5
tifa160,sd1dot1,tifa160_0,coco_1,7,How consistent?,2
"""


def tifa(folder: Path, **changes: Any) -> Path:
    """Write a file in TIFA's layout, of two prompts and two models."""
    content = {}
    for number, (prompt, model) in enumerate(itertools.product(("coco_1", "coco_2"), ("a", "b_c"))):
        content[f"{prompt}_{model}"] = {
            "text_id": prompt,
            "image_path": f"{prompt}_{model}.jpg",
            "text": "a bird",
            "human_scores": [1 + number, 5],
            "human_avg": 3 + number / 2,
            "tifa_vilt": number / 4,
        } | changes
    path = folder / "tifa.json"
    path.write_text(json.dumps(content))
    return path


def ratings_table(images: int, seed: int = 0, workers: int = 3) -> pd.DataFrame:
    """Ratings of four images of each prompt, by the quality of the image and noise."""
    generator = np.random.default_rng(seed)
    rows = []
    for image in range(images):
        quality = generator.integers(1, 6)
        for worker in range(workers):
            rating = np.clip(quality + generator.integers(-1, 2), 1, 5)
            rows.append((f"i{image}", f"p{image // 4}", "m", str(worker), int(rating)))
    return pd.DataFrame(rows, columns=RATING_COLUMNS)


def test_tifa_is_read(tmp_path: Path) -> None:
    ratings, scores = read_tifa_ratings(tifa(tmp_path))
    assert ratings["rating"].tolist() == [1, 5, 2, 5, 3, 5, 4, 5]
    assert ratings["model"].unique().tolist() == ["a", "b_c"]
    assert ratings["worker"].unique().tolist() == ["0", "1"]
    assert scores.columns.tolist() == ["image", "tifa_vilt"]
    assert scores["image"].tolist() == ratings["image"].unique().tolist()


def test_ratings_by_worker_name_images_as_tifa_does(tmp_path: Path) -> None:
    path = tmp_path / "workers.csv"
    path.write_text(WORKERS)
    ratings = read_worker_ratings(path)
    images = ["coco_1_mini_dalle", "coco_1_mini_dalle", "coco_1_stable_diffusion_v1_1"]
    assert ratings["image"].tolist() == images
    assert ratings["rating"].tolist() == [3, 5, 2]
    assert ratings["worker"].tolist() == ["7", "8", "7"]


@pytest.mark.parametrize(
    ("read", "text", "fault"),
    [
        (read_worker_ratings, WORKERS.replace("answer", "value"), "no column 'answer'"),
        (read_worker_ratings, WORKERS.replace(",5\n", ",\n"), "line 3: expected a rating"),
        (read_worker_ratings, WORKERS.replace(",5\n", ",nan\n"), "line 3: expected a rating"),
        (
            read_worker_ratings,
            WORKERS.replace(",5\n", ",6\n"),
            "line 3: expected a rating from 1 to 5, got '6' for image 'coco_1_mini_dalle'",
        ),
        (read_worker_ratings, WORKERS.replace(",8,", ",7,"), "line 3: expected one rating"),
        (read_worker_ratings, WORKERS.replace(",8,", ", ,"), "line 3: worker is missing"),
        (read_worker_ratings, WORKERS.replace("sd1dot1", ""), "line 4: model is missing"),
        (read_worker_ratings, WORKERS.replace("coco_1", " "), "line 2: prompt is missing"),
        (read_worker_ratings, WORKERS.split("\n")[0] + "\n", "no rows"),
        (read_worker_ratings, WORKERS + "tifa160,x\n", "line 5"),
    ],
)
def test_a_faulty_file_is_one_line(tmp_path: Path, read: Any, text: str, fault: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=fault) as error:
        read(path)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"human_scores": [0]}, "row 0: expected a rating from 1 to 5"),
        ({"human_scores": [float("nan")]}, "row 0: expected a rating"),
        ({"human_scores": [10**400]}, "row 0: expected a rating"),
        ({"human_scores": []}, "coco_1_a: expected an object with text_id and a list"),
        ({"text_id": " "}, "row 0: prompt is missing"),
        ({"human_scores": None}, "human_scores"),
    ],
)
def test_a_faulty_record_of_tifa_is_named(
    tmp_path: Path, changes: dict[str, Any], fault: str
) -> None:
    with pytest.raises(UserError, match=fault):
        read_tifa_ratings(tifa(tmp_path, **changes))


@pytest.mark.parametrize("content", ["[]", "{}", "[1]", "{", '{"a": {}}'])
def test_a_file_that_is_not_tifas_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tifa.json"
    path.write_text(content)
    with pytest.raises(UserError, match="tifa.json"):
        read_tifa_ratings(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_tifa_ratings(tmp_path / "other.json")


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=20), st.data()
)
def test_spearman_is_scipys_with_ties_and_resampled_entries(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    x, y = np.array(pairs, float).T
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    (value,) = spearman(x, y, np.array([counts], float))
    repeated_x, repeated_y = np.repeat(x, counts), np.repeat(y, counts)
    if len(set(repeated_x)) < 2 or len(set(repeated_y)) < 2:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(stats.spearmanr(repeated_x, repeated_y).statistic)


def test_correlations_with_people_are_scipys() -> None:
    ratings = ratings_table(40)
    means = ratings.groupby("image")["rating"].mean()
    generator = np.random.default_rng(1)
    scores = pd.DataFrame({"image": means.index, "good": means + generator.normal(size=40)})
    table = correlate_with_people(scores, ratings, resamples=200).set_index("measure")
    expected = stats.spearmanr(scores["good"], means.round(6)).statistic
    assert table.loc["spearman", "value"] == pytest.approx(expected)
    expected = stats.kendalltau(scores["good"], means.round(6)).statistic
    assert table.loc["kendall", "value"] == pytest.approx(expected)
    assert (table["low"] < table["value"]).all() and (table["value"] < table["high"]).all()
    assert table["images"].tolist() == [40, 40] and table["prompts"].tolist() == [10, 10]


def test_intervals_resample_prompts() -> None:
    """Images that repeat those of their prompt add nothing, so that the interval stays."""
    ratings = ratings_table(30).assign(prompt=lambda table: table["image"])
    means = ratings.groupby("image", sort=False)["rating"].mean().reset_index()
    noise = np.random.default_rng(2).normal(size=30)
    scores = pd.DataFrame({"image": means["image"], "score": means["rating"] + noise})
    copies = [ratings.assign(image=ratings["image"] + suffix) for suffix in ("", "x", "y")]
    more_scores = [scores.assign(image=scores["image"] + suffix) for suffix in ("", "x", "y")]
    columns = ["value", "low", "high"]
    once = correlate_with_people(scores, ratings, 200)[columns].iloc[0]
    thrice = correlate_with_people(pd.concat(more_scores), pd.concat(copies), 200)[columns].iloc[0]
    assert thrice.tolist() == pytest.approx(once.tolist())


def test_unscored_images_are_counted() -> None:
    ratings = ratings_table(12)
    scores = pd.DataFrame({"image": [f"i{n}" for n in range(10)], "s": [float("nan"), *range(9)]})
    table = correlate_with_people(scores, ratings, 50)
    assert table["images"].tolist() == [9, 9] and table["unscored"].tolist() == [3, 3]


def test_a_constant_score_has_no_correlation() -> None:
    scores = pd.DataFrame({"image": [f"i{n}" for n in range(8)], "s": 1.0})
    table = correlate_with_people(scores, ratings_table(8), 50)
    assert table[["value", "low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("scores", "fault"),
    [
        ({"s": [1.0]}, "no column image"),
        ({"image": ["i0", "i0"], "s": [1.0, 2.0]}, "row 1: duplicate image"),
        ({"image": ["i0", "i1"], "s": ["a", "b"]}, "s: expected finite numbers"),
        ({"image": ["i0", "i1"], "s": [1.0, float("inf")]}, "s: expected finite numbers"),
        ({"image": ["i0", "i1"], "s": [10**400, 1]}, "s: expected finite numbers"),
        ({"image": ["x", "y"], "s": [1.0, 2.0]}, "fewer than two rated images"),
        ({"image": ["i0", "i1"]}, "scores: no column of scores"),
    ],
)
def test_faulty_scores_are_refused(scores: dict[str, list], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        correlate_with_people(pd.DataFrame(scores), ratings_table(8), 50)


def test_missing_columns_and_values_of_ratings_are_named() -> None:
    ratings = ratings_table(4)
    with pytest.raises(UserError, match="no column worker"):
        check_ratings(ratings.drop(columns="worker"))
    with pytest.raises(UserError, match="row 2: prompt is missing"):
        check_ratings(ratings.assign(prompt=ratings["prompt"].where(ratings.index != 2)))
    with pytest.raises(UserError, match="no ratings"):
        check_ratings(ratings.iloc[:0])


def ordinal_alpha(ratings: pd.DataFrame) -> float:
    """Krippendorff's alpha by its definition: 1 - observed / expected disagreement."""
    counts = ratings["rating"].value_counts().sort_index()

    def distance(a: float, b: float) -> float:
        between = counts[(counts.index >= min(a, b)) & (counts.index <= max(a, b))].sum()
        return (between - (counts[a] + counts[b]) / 2) ** 2

    n = len(ratings)
    observed = 0.0
    for _, image in ratings.groupby("image"):
        for a, b in itertools.permutations(image["rating"], 2):
            observed += distance(a, b) / (len(image) - 1) / n
    expected = sum(distance(a, b) for a, b in itertools.permutations(ratings["rating"], 2))
    return 1 - observed / (expected / n / (n - 1))


def test_agreement_of_workers_is_krippendorffs_alpha() -> None:
    ratings = ratings_table(20)
    result = worker_agreement(ratings, resamples=100)
    assert result["alpha"] == pytest.approx(ordinal_alpha(ratings))
    assert result["low"] < result["alpha"] < result["high"]
    assert result["images"] == 20 and result["prompts"] == 5


def test_results_depend_on_the_seed_alone() -> None:
    ratings = ratings_table(40)
    scores = ratings.groupby("image")["rating"].first().rename("s").reset_index()
    first, second = (correlate_with_people(scores, ratings, 50, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    other = correlate_with_people(scores, ratings, 50, seed=4)
    assert other["value"].equals(first["value"]) and not other["low"].equals(first["low"])


def printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "compclip", "ratings", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout


def test_the_command_correlates_the_scores_beside_ratings_or_a_users(tmp_path: Path) -> None:
    ratings = tifa(tmp_path)
    lines = printed(str(ratings), "--resamples", "50").splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [
        ["tifa_vilt", "spearman"],
        ["tifa_vilt", "kendall"],
    ]
    assert lines[-1].startswith("agreement of raters: alpha ")
    # The scores rise with the ratings.
    assert " 1.000 " in lines[1]
    images = list(json.loads(ratings.read_text()))
    own = tmp_path / "own.csv"
    pd.DataFrame({"image": images, "mine": [4, 3, 2, 1]}).to_csv(own, index=False)
    lines = printed(str(ratings), "--scores", str(own), "--resamples", "50").splitlines()
    assert lines[1].split()[:3] == ["mine", "spearman", "-1.000"]


def test_the_command_prints_an_undefined_agreement(tmp_path: Path) -> None:
    lines = printed(str(tifa(tmp_path, human_scores=[3])), "--resamples", "50").splitlines()
    assert lines[-1] == "agreement of raters: alpha – (undefined), 0 images of 0 prompts"


def test_an_empty_cell_is_an_image_without_a_score(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("image,mine,other\na,,1\nb, ,2\nc,3,4\n")
    scores = read_scores(file)
    assert scores["mine"].isna().tolist() == [True, True, False]
    assert scores["other"].tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("image,mine\na,high\n", "mine: line 2: expected a number, got 'high' for image 'a'"),
        ("image,mine\n", "no rows"),
        ("image\na\n", "no column of scores"),
        ("name,mine\na,1\n", "no column 'image'"),
    ],
)
def test_a_faulty_table_of_scores_is_named(tmp_path: Path, content: str, fault: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(content)
    with pytest.raises(UserError, match=fault):
        read_scores(file)
