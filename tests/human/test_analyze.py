"""The analysis recovers the planted opinions of simulated people; majorities and preferences worked by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.core.errors import UserError
from compclip.core.rounding import json_values
from compclip.human.correlation import correlations, other_scores, run_scores
from compclip.human.opinions import majorities, opinions_of, preferences, workers_of
from compclip.human.tasks import KINDS, TASKS, prompt_key
from compclip.io import read_json
from tests.human.conftest import Study, simulate, written
from tests.scripts import job
from workflow_scripts.human import analyze
from workflow_scripts.human.study import read_scores

PEOPLE, CARELESS, SURVEYS = 6, 2, 30
# How strongly each generator's images are preferred: a is chosen over b with strength a / (a + b).
STRENGTH = {"photographs": 1.0, "faithful": 0.5, "memorizer": 0.25}


def score_of(study: Study) -> dict[tuple[Any, ...], float]:
    return run_scores(read_scores(study.scores))["expected_top1"]


def agreement(score: Any, known: Mapping[tuple[Any, ...], float]) -> Any:
    """The probability of agreeing with an image's caption: it grows with the image's score among all scores."""
    values = np.array(list(known.values()))
    return 1 / (1 + np.exp(-2 * (score - values.mean()) / values.std()))


@pytest.fixture(scope="module")
def chance(large: Study) -> Any:
    known = score_of(large)

    def planted(task: Mapping[str, Any]) -> float:
        if task["kind"] == "perceptual":
            one, two = STRENGTH[task["generator_1"]], STRENGTH[task["generator_2"]]
            return one / (one + two)
        return agreement(known[task["generator_1"], *prompt_key(task)], known)

    tasks = large.tasks[large.tasks["check"] != "gold"]
    chances = {task["task_id"]: planted(task) for task in tasks.to_dict("records")}
    return lambda task: chances[task["task_id"]]


@pytest.fixture(scope="module")
def surveys(large: Study, chance: Any) -> list[pd.DataFrame]:
    """The opinions of other people in each survey, for coverage."""
    study = large.tasks[large.tasks["check"] == "none"]
    columns = ["task_id", "worker", "answer", "seconds"]
    answers = (simulate(study, chance, PEOPLE, seed=seed).set_axis(columns, axis=1) for seed in range(SURVEYS))
    return [opinions_of(table, study) for table in answers]


def covers(hits: list[bool]) -> bool:
    """Whether so many independent intervals contain the truth: of 95 % ones enough do in 999 cases of 1,000."""
    least = stats.binom.ppf(0.001, len(hits), 0.95)
    assert stats.binom.sf(least - 1, len(hits), 0.7) < 0.01, "too few to notice intervals of 70 %"
    return sum(hits) >= least


@pytest.fixture(scope="module")
def answers(large: Study, chance: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "answers.csv"
    simulate(large.tasks, chance, PEOPLE + CARELESS, careless=CARELESS, seed=3).to_csv(path, index=False)
    return path


def run_analysis(study: Study, answers: list[Path], folder: Path, **other: Path) -> dict[str, Any]:
    reads = {"tasks": study.folder / "tasks.parquet", "answers": answers, "scores": study.scores}
    writes = {"analysis": folder / "analysis", "summary": folder / "analysis.json"}
    reads["other"] = list(other.values())
    analyze.main(job(reads, writes, other=list(other), keep=0.75, bootstrap=200, seed=0))
    return read_json(folder / "analysis.json")


@pytest.fixture(scope="module")
def analyzed(large: Study, answers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of analysis.json and analysis/."""
    folder = tmp_path_factory.mktemp("analyzed")
    run_analysis(large, [answers], folder)
    return folder


@pytest.fixture(scope="module")
def summary(analyzed: Path) -> dict[str, Any]:
    return read_json(analyzed / "analysis.json")


def test_careless_people_are_excluded(summary: dict[str, Any], large: Study) -> None:
    assert summary["workers"]["excluded"] == CARELESS and summary["workers"]["answered"] == PEOPLE + CARELESS
    assert summary["workers"]["answers_excluded"] == CARELESS * len(large.tasks)
    assert summary["answers"] == summary["records"]["records"] == (PEOPLE + CARELESS) * len(large.tasks)


def test_planted_preferences_are_within_their_intervals(
    summary: dict[str, Any], large: Study, chance: Any, surveys: list[pd.DataFrame]
) -> None:
    tasks = large.tasks[large.tasks["check"] == "none"].to_dict("records")
    expected = {}
    for row in summary["preferences"]:
        shown = [
            t for t in tasks
            if t["kind"] == row["kind"] and row["split"] in ("all", t["split"])
            and row["generator"] in (t["generator_1"], t["generator_2"])
            and (row["against"] in (None, "all") or row["against"] in (t["generator_1"], t["generator_2"]))
        ]  # fmt: skip
        assert row["tasks"] == len(shown) and row["answers"] == PEOPLE * len(shown)
        chances = [chance(t) if t["generator_1"] == row["generator"] else 1 - chance(t) for t in shown]
        expected[row["kind"], row["generator"], row["against"], row["split"]] = np.mean(chances)
    hits = []
    for opinions in surveys[:10]:
        for row in json_values(preferences(opinions, 200, 0).to_dict("records")):
            # Rows that share answers are not independent; a single image tells little.
            apart = row["split"] != "all" and (row["against"] is None or row["generator"] < row["against"] != "all")
            if apart and row["images"] > 1:
                truth = expected[row["kind"], row["generator"], row["against"], row["split"]]
                hits.append(row["low"] <= truth <= row["high"])
    assert len(hits) == 22 * 10 and covers(hits)
    shares = {
        row["generator"]: row["share"]
        for row in summary["preferences"]
        if row["kind"] == "perceptual" and row["against"] == "all" and row["split"] == "all"
    }
    assert shares["photographs"] > shares["faithful"] > shares["memorizer"]


def test_planted_correlations_are_within_their_intervals(large: Study, surveys: list[pd.DataFrame]) -> None:
    known, study = score_of(large), large.tasks[large.tasks["check"] == "none"]
    random, truth, rows = np.random.default_rng(0), {}, []
    for kind in ("match", "caption"):
        tasks = study[study["kind"] == kind]
        score = [known[row["generator_1"], *prompt_key(row)] for row in tasks.to_dict("records")]
        # The same people are asked about the same scores many times.
        score = np.tile(score, 100)
        share = random.binomial(PEOPLE, agreement(score, known)) / PEOPLE
        clear = share != 0.5
        truth[kind] = {
            "kendall": stats.kendalltau(score, share)[0],
            "spearman": stats.spearmanr(score, share)[0],
            "point_biserial": stats.pearsonr(score[clear], share[clear] > 0.5)[0],
        }
        for opinions in surveys:
            table = correlations(majorities(opinions, tasks), {"expected_top1": known}, 100, 0)
            rows += table[(table["split"] == "all") & (table["level"] == "image")].to_dict("records")
    for statistic in truth["match"]:
        found = [(row, truth[row["kind"]][statistic]) for row in rows if row["statistic"] == statistic]
        assert len(found) == 2 * SURVEYS and min(of[statistic] for of in truth.values()) > 0.4
        assert covers([row["low"] <= value <= row["high"] for row, value in found]), statistic
        assert np.median([row["low"] for row, _ in found]) > 0.2


def test_correlations_equal_scipys(summary: dict[str, Any], large: Study, analyzed: Path) -> None:
    keys = ("kind", "score", "level", "statistic")
    rows = {tuple(r[key] for key in keys): r for r in summary["correlations"] if r["split"] == "all"}
    for kind in ("match", "caption"):
        study = large.tasks[(large.tasks["check"] == "none") & (large.tasks["kind"] == kind)]
        shares = pd.read_csv(analyzed / "analysis" / "tasks.csv").set_index("task_id")["share"][study["task_id"]]
        for name, scores in run_scores(read_scores(large.scores)).items():
            score = [scores[row["generator_1"], *prompt_key(row)] for row in study.to_dict("records")]
            value = rows[kind, name, "image", "kendall"]["value"]
            assert value == pytest.approx(stats.kendalltau(score, shares)[0], abs=1e-6)
        assert rows[kind, "expected_top1", "generator and split", "kendall"]["n"] == 8
    assert summary["kinds"]["match"]["agreement"]["low"] > 0


def test_same_answers_same_bytes(large: Study, answers: Path, analyzed: Path, tmp_path: Path) -> None:
    table = pd.read_csv(answers, dtype=str)
    halves = [tmp_path / "b.csv", tmp_path / "a.csv"]
    table.iloc[::2].to_csv(halves[0], index=False)
    pd.concat([table.iloc[1::2], table.iloc[:40:2]]).to_csv(halves[1], index=False)
    again = run_analysis(large, halves, tmp_path)
    for file in sorted((analyzed / "analysis").iterdir()):
        assert file.read_bytes() == (tmp_path / "analysis" / file.name).read_bytes(), file.name
    first = read_json(analyzed / "analysis.json")
    assert again.pop("records") == first.pop("records") | {"records": len(table) + 20, "twice": 20}
    assert again == first


def test_artifacts_name_no_worker(analyzed: Path) -> None:
    files = [analyzed / "analysis.json", *(analyzed / "analysis").iterdir()]
    made = {"tasks.csv", "workers.csv", "preferences.csv", "correlations.csv", "people.svg"}
    assert {file.name for file in files[1:]} == made
    for file in files:
        text = file.read_text()
        assert "person0" not in text and "/tmp" not in text and "NaN" not in text, file
    workers = pd.read_csv(analyzed / "analysis" / "workers.csv")
    assert workers["worker"].tolist() == list(range(1, PEOPLE + CARELESS + 1))


def test_few_answers_are_enough_to_run(study: Study, tmp_path: Path) -> None:
    task = study.tasks.query("kind == 'match' and check == 'none'")["task_id"].iloc[0]
    summary = run_analysis(study, [written(tmp_path / "a.csv", (task, "w", "no", None))], tmp_path)
    match = summary["kinds"]["match"]
    assert match["answered"] == 1 and match["agreement"]["alpha"] is None and match["seconds_median"] is None
    assert summary["workers"]["met_no_gold_task"] == 1 and summary["correlations"] == []


def test_answers_that_do_not_count_alone_are_refused(study: Study, tmp_path: Path) -> None:
    gold = study.tasks.query("check == 'gold'")
    careless = [
        (task, "w", next(answer for answer in KINDS[kind].answers if answer != right), 1)
        for task, kind, right in gold[["task_id", "kind", "right"]].itertuples(index=False)
    ]
    with pytest.raises(UserError, match=r"no answer to the study is left: 1 of 1 workers missed .* lower keep"):
        run_analysis(study, [written(tmp_path / "a.csv", *careless)], tmp_path)
    with pytest.raises(UserError, match="no answer to the tasks"):
        run_analysis(study, [written(tmp_path / "b.csv", ("f" * 16, "w", "no", 0))], tmp_path)
    assert not (tmp_path / "analysis").exists()


def test_another_score(large: Study, answers: Path, tmp_path: Path) -> None:
    columns = ["generator", "split", "image_id", "caption_id", "draw", "score"]
    table = pd.DataFrame([(*image, -value) for image, value in score_of(large).items()], columns=columns)
    table.to_csv(tmp_path / "other.csv", index=False)
    table.to_parquet(tmp_path / "other.parquet")
    assert other_scores(tmp_path / "other.csv") == other_scores(tmp_path / "other.parquet")
    rows = pd.DataFrame(run_analysis(large, [answers], tmp_path, upside=tmp_path / "other.csv")["correlations"])
    rows = rows.query("kind == 'match' and split == 'all' and level == 'image' and statistic == 'kendall'")
    by_score = rows.set_index("score")["value"]
    assert by_score["upside"] == pytest.approx(-by_score["expected_top1"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("generator,split,image_id,caption_id\n", "no column 'score'"),
        ("generator,split,image_id,caption_id,score\ng,s,i,0,high\n", "line 2: caption_id, draw and score must be"),
        ("generator,split,image_id,caption_id,score\ng,s,i,0,nan\n", "line 2: score is nan"),
        ("generator,split,image_id,caption_id,score\ng,s,i,0,1\ng,s,i,0,2\n", "line 3: second score"),
        ("generator,split,image_id,caption_id,score\ng,s\n", "line 2: 2 values"),
    ],
)
def test_bad_scores_are_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(UserError, match=reason):
        other_scores(tmp_path / "s.csv")


def task(name: str, kind: str, generators: str = "g", **more: object) -> dict[str, object]:
    row = dict.fromkeys(TASKS.columns) | {
        "task_id": name, "kind": kind, "check": "none", "batch": 1, "place": 1, "split": "test_seen", "image_id": name,
        "caption_id": 0, "draw": 0, "picture_1": "x.png",
    }  # fmt: skip
    row |= {f"generator_{i}": g for i, g in enumerate(generators.split(), 1)}
    return row | more


def vote(worker: str, name: str, choice: str, seconds: float = 1.0) -> dict[str, object]:
    return {"worker": worker, "task_id": name, "answer": choice, "seconds": seconds}


TASKS_BY_HAND = pd.DataFrame(
    [
        task("p1", "perceptual", "b a"),
        task("p2", "perceptual", "a b", split="test_swapped"),
        task("p1again", "perceptual", "a b", check="repeat", of="p1", image_id="p1"),
        task("m1", "match"),
        task("m2", "match", "h"),
        task("c1", "caption", right="2"),
        task("g1", "match", "", check="gold", right="yes", split=None, image_id=None),
        task("g2", "match", "", check="gold", right="no", split=None, image_id=None),
        task("m3", "match", "h"),
    ]
).astype(object)
ANSWERS_BY_HAND = pd.DataFrame(
    [
        # a is preferred twice to once on p1; p1again changes nothing.
        vote("x", "p1", "2", 3), vote("y", "p1", "2", 5), vote("z", "p1", "1", 100),
        vote("x", "p1again", "1"), vote("y", "p1again", "2"),
        vote("x", "p2", "1"), vote("y", "p2", "2"),
        vote("x", "m1", "yes"), vote("y", "m1", "yes"), vote("x", "m2", "no"),
        vote("x", "c1", "2"), vote("y", "c1", "1"), vote("z", "c1", "1"),
        vote("x", "g1", "yes"), vote("x", "g2", "no"), vote("y", "g1", "yes"), vote("y", "g2", "yes"),
    ]
)  # fmt: skip


def test_majorities() -> None:
    table = majorities(opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND), TASKS_BY_HAND).set_index("task_id")
    assert list(table.index) == ["p1", "p2", "m1", "m2", "c1", "m3"]
    assert table["answers"].tolist() == [3, 2, 2, 1, 3, 0]
    assert table["share"].round(3).tolist()[:5] == [0.667, 0.5, 1, 0, 0.333] and np.isnan(table.at["m3", "share"])
    assert table["majority"].tolist()[:5] == ["a", "tie", "yes", "no", "other"] and pd.isna(table.at["m3", "majority"])


def test_workers() -> None:
    opinions = opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND)
    workers = workers_of(opinions, keep=0.75).set_index("worker")
    assert workers[["gold", "gold_right"]].values.tolist() == [[2, 2], [2, 1], [0, 0]]
    # x stayed with a on the repeat, y went from a to b.
    assert workers[["repeats", "repeats_same"]].values.tolist() == [[1, 1], [1, 0], [0, 0]]
    # z met no gold task: kept, and counted elsewhere.
    assert workers["kept"].tolist() == [True, False, True]
    assert workers_of(opinions, keep=0.5)["kept"].all()
    assert workers.at["z", "seconds_mean"] == 50.5 and workers.at["x", "seconds_median"] == 1


def test_preferences() -> None:
    opinions = opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND)
    shares = preferences(opinions, 200, 0).set_index(["kind", "generator", "against", "split"])["share"]
    assert shares["perceptual", "a", "all", "all"] == pytest.approx(3 / 5)
    assert shares["perceptual", "b", "a", "all"] == pytest.approx(2 / 5)
    assert shares["perceptual", "a", "b", "test_seen"] == pytest.approx(2 / 3)
    shares = preferences(opinions, 200, 0)
    one = shares[(shares["kind"] == "match") & (shares["split"] == "all")].set_index("generator")
    assert one["share"].to_dict() == {"g": 1, "h": 0}
    # One image tells little.
    assert one[["low", "high"]].round(3).values.tolist() == [[0.025, 1], [0, 0.975]]
    assert shares[shares["kind"] == "caption"]["share"].tolist()[-1] == pytest.approx(1 / 3)
