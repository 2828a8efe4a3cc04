"""The analysis recovers the planted opinions of simulated people; majorities and preferences by
hand; correlations.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError
from compclip.human.answers import collect
from compclip.human.correlation import answer_correlations, correlate_entries, run_scores
from compclip.human.opinions import majorities, opinions_of, preferences, workers_of
from compclip.human.tasks import KINDS, TASKS, prompt_key
from tests.human.conftest import COLUMNS, Study, simulate, written
from tests.scripts import job
from workflow_scripts.human import analyze
from workflow_scripts.human.study import read_scores

PEOPLE, CARELESS, SURVEYS = 6, 2, 30
# How strongly each generator's images are preferred: a is chosen over b with strength a / (a + b).
STRENGTH = {"photographs": 1.0, "faithful": 0.5, "memorizer": 0.25, "usual": 0.25}


def score_of(study: Study) -> dict[tuple[Any, ...], float]:
    return run_scores(read_scores(study.scores))["expected_top1"]


def agreement(score: Any, known: Mapping[tuple[Any, ...], float]) -> Any:
    """The probability of agreeing with an image's caption: it grows with the image's score among
    all scores.
    """
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
    answers = (
        simulate(study, chance, PEOPLE, seed=seed).set_axis(columns, axis=1)
        for seed in range(SURVEYS)
    )
    return [opinions_of(table, study) for table in answers]


def covers(hits: list[bool]) -> bool:
    """Whether so many independent intervals contain the truth: of 95 % ones enough do in 999 cases
    of 1,000.
    """
    least = stats.binom.ppf(0.001, len(hits), 0.95)
    assert stats.binom.sf(least - 1, len(hits), 0.7) < 0.01, "too few to notice intervals of 70 %"
    return sum(hits) >= least


@pytest.fixture(scope="module")
def answers(large: Study, chance: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "answers.csv"
    simulate(large.tasks, chance, PEOPLE + CARELESS, careless=CARELESS, seed=3).to_csv(
        path, index=False
    )
    return path


def run_analysis(study: Study, answers: list[Path], folder: Path) -> dict[str, Any]:
    reads = {"tasks": study.folder / "tasks.parquet", "answers": answers, "scores": study.scores}
    writes = {"analysis": folder / "analysis", "summary": folder / "analysis.json"}
    analyze.main(job(reads, writes, keep=0.75, seed=0))
    return read_json(folder / "analysis.json")


@pytest.fixture(scope="module")
def analyzed(large: Study, answers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of analysis.json and analysis/."""
    folder = tmp_path_factory.mktemp("analyzed")
    run_analysis(large, [answers], folder)
    return folder


def test_careless_people_are_excluded_no_worker_named_and_same_answers_give_same_bytes(
    analyzed: Path, large: Study, answers: Path, tmp_path: Path
) -> None:
    summary = read_json(analyzed / "analysis.json")
    assert (
        summary["workers"]["excluded"] == CARELESS
        and summary["workers"]["answered"] == PEOPLE + CARELESS
    )
    assert summary["workers"]["answers_excluded"] == CARELESS * len(large.tasks)
    assert (
        summary["answers"]
        == summary["records"]["records"]
        == (PEOPLE + CARELESS) * len(large.tasks)
    )
    assert summary["kinds"]["match"]["agreement"]["low"] > 0
    files = [analyzed / "analysis.json", *(analyzed / "analysis").iterdir()]
    made = {"tasks.csv", "workers.csv", "preferences.csv", "correlations.csv"}
    assert {file.name for file in files[1:]} == made
    for file in files:
        text = file.read_text()
        assert "person0" not in text and "/tmp" not in text and "NaN" not in text, file
    workers = pd.read_csv(analyzed / "analysis" / "workers.csv")
    assert workers["worker"].tolist() == list(range(1, PEOPLE + CARELESS + 1))
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


def test_planted_preferences_are_within_their_intervals(
    analyzed: Path, large: Study, chance: Any, surveys: list[pd.DataFrame]
) -> None:
    tasks = large.tasks[large.tasks["check"] == "none"].to_dict("records")
    expected = {}
    preferred = pd.read_csv(
        analyzed / "analysis" / "preferences.csv", keep_default_na=False
    ).to_dict("records")
    for row in preferred:
        shown = [
            t
            for t in tasks
            if t["kind"] == row["kind"]
            and row["split"] in ("all", t["split"])
            and row["generator"] in (t["generator_1"], t["generator_2"])
            and row["against"] in ("", "all", t["generator_1"], t["generator_2"])
        ]
        assert row["tasks"] == len(shown) and row["answers"] == PEOPLE * len(shown)
        chances = [
            chance(t) if t["generator_1"] == row["generator"] else 1 - chance(t) for t in shown
        ]
        expected[row["kind"], row["generator"], row["against"], row["split"]] = np.mean(chances)
    hits = []
    for opinions in surveys[:10]:
        for row in preferences(opinions, 200, 0).to_dict("records"):
            # Rows that share answers are not independent; a single image tells little.
            apart = row["split"] != "all" and (
                not row["against"] or row["generator"] < row["against"] != "all"
            )
            if apart and row["images"] > 1:
                truth = expected[row["kind"], row["generator"], row["against"], row["split"]]
                hits.append(row["low"] <= truth <= row["high"])
    assert len(hits) == 27 * 10 and covers(hits)
    fractions = {
        row["generator"]: row["fraction"]
        for row in preferred
        if row["kind"] == "perceptual" and row["against"] == "all" and row["split"] == "all"
    }
    assert fractions["photographs"] > fractions["faithful"] > fractions["memorizer"]


def test_planted_correlations_are_within_their_intervals(
    large: Study, surveys: list[pd.DataFrame]
) -> None:
    known, study = score_of(large), large.tasks[large.tasks["check"] == "none"]
    random, truth, rows = np.random.default_rng(0), {}, []
    for kind in ("match", "caption"):
        tasks = study[study["kind"] == kind]
        score = [known[row["generator_1"], *prompt_key(row)] for row in tasks.to_dict("records")]
        # The same people are asked about the same scores many times.
        score = np.tile(score, 100)
        fraction = random.binomial(PEOPLE, agreement(score, known)) / PEOPLE
        truth[kind] = stats.kendalltau(score, fraction)[0]
        for opinions in surveys:
            table = answer_correlations(
                majorities(opinions, tasks), {"expected_top1": known}, 100, 0
            )
            rows += table[table["split"] == "all"].to_dict("records")
    assert len(rows) == 2 * SURVEYS and min(truth.values()) > 0.3
    assert covers([row["low"] <= truth[row["kind"]] <= row["high"] for row in rows])
    assert np.median([row["low"] for row in rows]) > 0.2


def test_one_answer_is_enough_but_not_answers_that_do_not_count(
    study: Study, tmp_path: Path
) -> None:
    task = study.tasks.query("kind == 'match' and check == 'none'")["task_id"].iloc[0]
    summary = run_analysis(study, [written(tmp_path / "a.csv", (task, "w", "no", None))], tmp_path)
    match = summary["kinds"]["match"]
    assert (
        match["answered"] == 1
        and match["agreement"]["alpha"] is None
        and match["seconds_median"] is None
    )
    assert summary["workers"]["met_no_gold_task"] == 1
    assert pd.read_csv(tmp_path / "analysis" / "correlations.csv").empty
    gold = study.tasks.query("check == 'gold'")
    careless = [
        (task, "w", next(answer for answer in KINDS[kind].answers if answer != right), 1)
        for task, kind, right in gold[["task_id", "kind", "right"]].itertuples(index=False)
    ]
    with pytest.raises(
        UserError, match=r"no answer to the study is left: 1 of 1 workers missed .* lower keep"
    ):
        run_analysis(study, [written(tmp_path / "a.csv", *careless)], tmp_path / "refused")
    with pytest.raises(UserError, match="no answer to the tasks"):
        run_analysis(
            study, [written(tmp_path / "b.csv", ("f" * 16, "w", "no", 0))], tmp_path / "refused"
        )
    assert not (tmp_path / "refused").exists()


def task(name: str, kind: str, generators: str = "g", **more: object) -> dict[str, object]:
    row = dict.fromkeys(TASKS.columns) | {
        "task_id": name,
        "kind": kind,
        "check": "none",
        "batch": 1,
        "place": 1,
        "split": "test_seen",
        "image_id": name,
        "caption_id": 0,
        "draw": 0,
        "picture_1": "x.png",
    }
    row |= {f"generator_{i}": g for i, g in enumerate(generators.split(), 1)}
    return row | more


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
        ("x", "p1", "2", 3),
        ("y", "p1", "2", 5),
        ("z", "p1", "1", 100),
        ("x", "p1again", "1", 1),
        ("y", "p1again", "2", 1),
        ("x", "p2", "1", 1),
        ("y", "p2", "2", 1),
        ("x", "m1", "yes", 1),
        ("y", "m1", "yes", 1),
        ("x", "m2", "no", 1),
        ("x", "c1", "2", 1),
        ("y", "c1", "1", 1),
        ("z", "c1", "1", 1),
        ("x", "g1", "yes", 1),
        ("x", "g2", "no", 1),
        ("y", "g1", "yes", 1),
        ("y", "g2", "yes", 1),
    ],
    columns=["worker", "task_id", "answer", "seconds"],
)


def test_opinions_by_hand() -> None:
    opinions = opinions_of(ANSWERS_BY_HAND, TASKS_BY_HAND)
    table = majorities(opinions, TASKS_BY_HAND).set_index("task_id")
    assert list(table.index) == ["p1", "p2", "m1", "m2", "c1", "m3"]
    assert table["answers"].tolist() == [3, 2, 2, 1, 3, 0]
    assert table["fraction"].round(3).tolist()[:5] == [0.667, 0.5, 1, 0, 0.333] and np.isnan(
        table.at["m3", "fraction"]
    )
    assert table["majority"].tolist()[:5] == ["a", "tie", "yes", "no", "other"] and pd.isna(
        table.at["m3", "majority"]
    )
    workers = workers_of(opinions, keep=0.75).set_index("worker")
    assert workers[["gold", "gold_right"]].values.tolist() == [[2, 2], [2, 1], [0, 0]]
    # x stayed with a on the repeat, y went from a to b.
    assert workers[["repeats", "repeats_same"]].values.tolist() == [[1, 1], [1, 0], [0, 0]]
    # z met no gold task: kept, and counted elsewhere.
    assert workers["kept"].tolist() == [True, False, True]
    assert workers_of(opinions, keep=0.5)["kept"].all()
    assert workers.at["z", "seconds_mean"] == 50.5 and workers.at["x", "seconds_median"] == 1
    fractions = preferences(opinions, 200, 0)
    of = fractions.set_index(["kind", "generator", "against", "split"])["fraction"]
    assert of["perceptual", "a", "all", "all"] == pytest.approx(3 / 5)
    assert of["perceptual", "b", "a", "all"] == pytest.approx(2 / 5)
    assert of["perceptual", "a", "b", "test_seen"] == pytest.approx(2 / 3)
    one = fractions[(fractions["kind"] == "match") & (fractions["split"] == "all")].set_index(
        "generator"
    )
    assert one["fraction"].to_dict() == {"g": 1, "h": 0}
    # One image tells little.
    assert one[["low", "high"]].round(3).values.tolist() == [[0.025, 1], [0, 0.975]]
    assert fractions[fractions["kind"] == "caption"]["fraction"].tolist()[-1] == pytest.approx(
        1 / 3
    )


def entries_of(n: int, random: np.random.Generator) -> pd.DataFrame:
    score = np.round(random.random(n), 6)
    fraction = random.binomial(3, score) / 3
    return pd.DataFrame(
        {"image_id": [str(i // 2) for i in range(n)], "score": score, "fraction": fraction}
    )


def test_correlations_of_entries() -> None:
    """A mirrored entry does not depend on its side; what does not vary has no correlation, two
    images no interval.
    """
    random = np.random.default_rng(3)
    entries = entries_of(40, random).assign(score=lambda t: t["score"] - 0.5)
    side = random.random(40) < 0.5
    turned = entries.assign(
        score=np.where(side, -entries["score"], entries["score"]),
        fraction=np.where(side, 1 - entries["fraction"], entries["fraction"]),
    )
    one, other = (
        correlate_entries(e, 100, np.random.default_rng(0), mirrored=True)
        for e in (entries, turned)
    )
    assert one == pytest.approx(other) and one["n"] == 40
    entries = entries_of(10, np.random.default_rng(4)).assign(score=0.5)
    row = correlate_entries(entries, 100, np.random.default_rng(0))
    assert np.isnan(row["value"]) and np.isnan(row["low"])
    # Half of the resamples of two images are of one image, and have no correlation.
    row = correlate_entries(entries_of(4, np.random.default_rng(3)), 500, np.random.default_rng(0))
    assert not np.isnan(row["value"]) and np.isnan(row["low"]) and np.isnan(row["high"])


# Answers are read from one form of CSV file, which Label Studio exports, and faulty ones are named.

KIND_OF_TASK = {"t1": "perceptual", "t2": "match", "t3": "caption"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("t1", "w-1", "2", 3.5), None),
        (("t2", "ann@example.org", "no", 0), None),
        (("t3", "12", "1", ""), None),
        (("t1", "w-1", "yes", 1), "choice: expected 1 or 2"),
        (("t1", "w-1", "", 1), "choice: expected 1 or 2"),
        (("t2", "w-1", '["yes", "no"]', 1), "choice: expected yes or no"),
        (("t1", "", "1", 1), "annotator: expected 1 to 64 letters"),
        (("t1", "a b", "1", 1), "annotator"),
        (("t1", "x" * 65, "1", 1), "annotator"),
        (("t1", "../x", "1", 1), "annotator"),
        (("t1", "w-1", "1", -1), "lead_time: expected a number from 0 to 86400"),
        (("t1", "w-1", "1", "inf"), "lead_time"),
        (("t1", "w-1", "1", "soon"), "lead_time"),
    ],
)
def test_a_row_is_read_or_its_fault_named(
    tmp_path: Path, row: tuple[Any, ...], reason: str | None
) -> None:
    path = written(tmp_path / "a.csv", ("t2", "w-9", "yes", 1), row)
    table, counts, problems = collect([path], KIND_OF_TASK)
    assert len(table) == 1 + (reason is None) and counts["wrong"] == len(problems) == (
        reason is not None
    )
    assert reason is None or problems[0].startswith(f"{path}: row 2: {reason}")


def test_answers_join_tasks_in_any_form(tmp_path: Path) -> None:
    header = "\ufeff\ufefftask_id\u200b, annotator,choice\n"
    (tmp_path / "a.csv").write_text(f"{header}t1\u200b,w ,\u00a02\nt1,w,2\n", encoding="utf-8")
    table, counts, problems = collect([tmp_path / "a.csv"], KIND_OF_TASK)
    assert table[["task_id", "worker", "answer"]].values.tolist() == [["t1", "w", "2"]]
    assert counts == {"records": 2, "twice": 1} and not problems


def test_the_first_answer_counts_and_exports_of_label_studio(tmp_path: Path) -> None:
    one = written(
        tmp_path / "1.csv", ("t1", "w", "2", 3.5), ("t1", "w", "2", 9), ("elsewhere", "w", "2", 1)
    )
    two = written(tmp_path / "2.csv", ("t1", "w", "1"), ("t1", "v", "1"), columns=COLUMNS[:3])
    table, counts, problems = collect([one, two], KIND_OF_TASK)
    assert table.fillna(-1).values.tolist() == [["t1", "v", "1", -1], ["t1", "w", "2", 3.5]]
    assert (
        counts == {"records": 5, "of other tasks": 1, "twice": 1, "contradicts another": 1}
        and not problems
    )
    assert list(table) == ["task_id", "worker", "answer", "seconds"]
    # As label-studio-sdk 2.1 writes it (converter/exports/csv2.py): sorted columns, quoted, with
    # all task data.
    picture = "data:image/png;base64," + "iVBO" * 100_000
    rows = [
        {
            "id": 7,
            "task_id": "t1",
            "picture_1": picture,
            "annotator": "1",
            "choice": "2",
            "lead_time": 4.288,
        },
        {
            "id": 8,
            "task_id": "t2",
            "picture_1": picture,
            "annotator": "ann@example.org",
            "choice": "no",
        },
    ]
    always = {
        "annotation_id": 1001,
        "created_at": "2026-03-09T22:16:08Z",
        "updated_at": "2026-03-09T22:16:09Z",
    }
    exported = pd.DataFrame(rows).assign(**always, text_1="a red\nbird").sort_index(axis=1)
    exported.to_csv(tmp_path / "project-3.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    table, _, problems = collect([tmp_path / "project-3.csv"], KIND_OF_TASK)
    assert table.fillna(-1).values.tolist() == [
        ["t1", "1", "2", 4.288],
        ["t2", "ann@example.org", "no", -1],
    ]
    assert not problems


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,b\n1,2\n", "no column task_id, annotator, choice; export the answers"),
        (b"task_id,choice\n1,2\n", "no column annotator"),
        (b"", "not a readable CSV file"),
        (b"task_id,annotator,choice\n\xff,1,2\n", "not a readable CSV file"),
        (b'[{"task_id": "t1"}]', "no column"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(UserError, match=reason):
        collect([tmp_path / "x.csv"], KIND_OF_TASK)
    with pytest.raises(UserError, match="not a readable CSV file"):
        collect([tmp_path / "none.csv"], KIND_OF_TASK)
