"""Trials worked by hand, and judges that know the answer, its opposite, or nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.score import world
from workflow_scripts.clip.tokens import SPECIAL, WordTokenizer
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_json, write_json, write_table
from workflow_scripts.core.tables import PAIRS, RANKING
from workflow_scripts.score import adjective_choice
from workflow_scripts.score.adjective_choice import summarize
from workflow_scripts.score.steps import AdjectiveChoice
from workflow_scripts.score.trials import TRIAL, make_trials


def occurrence(image: str, caption: int, text: str, adjective: str, noun: str, relation: str = "adjacent") -> tuple:
    start, at = text.index(adjective), text.index(noun)
    return image, caption, adjective, noun, start, start + len(adjective), at, at + len(noun), relation


COLUMNS = [
    "image_id", "caption_id", "adjective", "noun", "adjective_start", "adjective_end", "noun_start", "noun_end",
    "relation",
]  # fmt: skip
TEXTS = {
    ("a", 0): "a red wing and a blue bill",
    ("a", 1): "the wing is orange or so",
    ("b", 0): "red wing and bill",
    ("b", 1): "a bird with a green tail",
    ("c", 0): "an orange wing",
}


@pytest.fixture
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    captions = pd.DataFrame([(*k, t) for k, t in TEXTS.items()], columns=["image_id", "caption_id", "text"])
    pairs = [
        occurrence("a", 0, TEXTS["a", 0], "red", "wing"),
        occurrence("a", 0, TEXTS["a", 0], "blue", "bill"),
        occurrence("a", 1, TEXTS["a", 1], "orange", "wing", "predicative"),
        occurrence("b", 0, TEXTS["b", 0], "red", "wing"),
        occurrence("b", 0, TEXTS["b", 0], "red", "bill", "shared"),
        occurrence("b", 1, TEXTS["b", 1], "green", "tail"),
        occurrence("c", 0, TEXTS["c", 0], "orange", "wing"),
    ]
    return captions, pd.DataFrame(pairs, columns=COLUMNS)


def test_trials_by_hand(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    trials, left_out = make_trials(*tables, {"red_wing", "orange_wing"}, ["blue", "orange", "red"], seed=0)
    rows = [tuple(row) for row in trials[["image_id", "caption_id", "adjective", "wrong", "wrong_text"]].values]
    # Of image a, red and orange are said of the wing: blue is all that is left. Of b, red bears on the bill as well.
    assert rows[:2] == [
        ("a", 0, "red", "blue", "a blue wing and a blue bill"),
        ("a", 1, "orange", "blue", "the wing is blue or so"),
    ]
    assert rows[2][:3] == ("c", 0, "orange") and rows[2][4] == f"a {rows[2][3]} wing"
    assert left_out == {"shared or disputed": 1}
    trials, left_out = make_trials(*tables, {"orange_wing"}, ["orange", "red"], seed=0)
    assert len(trials) == 1 and left_out == {"no wrong adjective is left": 1}


def test_wrong_adjectives_depend_on_the_seed_alone(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    captions, pairs = tables
    adjectives = [f"color{i}" for i in range(30)]
    one, _ = make_trials(captions, pairs, {"red_wing", "orange_wing"}, adjectives, 1)
    same, _ = make_trials(captions.iloc[::-1], pairs.iloc[::-1], {"orange_wing", "red_wing"}, adjectives, 1)
    other, _ = make_trials(captions, pairs, {"red_wing", "orange_wing"}, adjectives, 2)
    assert one.equals(same) and not one.equals(other)


def test_no_trials(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    trials, _ = make_trials(*tables, {"black_wing"}, ["red"], 0)
    assert list(trials.columns) == TRIAL
    found = summarize(trials, np.zeros(0), 100, 0)
    assert (found["n"], found["right"], found["low"], found["adjectives"]) == (0, None, None, {})


def test_summary() -> None:
    trials = pd.DataFrame({"image_id": ["a", "a", "b", "c"], "adjective": ["red", "blue", "red", "red"]})
    found = summarize(trials, np.array([0.5, -0.5, 0.0, -0.1]), 500, 0)
    assert found["right"] == 0.375 and found["ties"] == 1 and found["images"] == 3
    assert found["adjectives"] == {"blue": {"n": 1, "right": 0.0}, "red": {"n": 3, "right": 0.5}}
    assert found["low"] <= 0.375 <= found["high"]


def test_the_command_counts_captions_that_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    results = world.build(tmp_path)
    place = results / "d" / "color"
    captions = pd.read_parquet(results / "d" / "captions.parquet")
    pairs = [
        occurrence(row.image_id, row.caption_id, row.text, *row.text.split()[1:3]) for row in captions.itertuples()
    ]
    write_table(pd.DataFrame(pairs, columns=COLUMNS), results / "d" / "pairs.parquet", PAIRS)
    ranking = pd.DataFrame({"adjective": world.COLORS, "noun": "wing", "count": 2, "images": 2})
    ranking = ranking.assign(rank=range(1, 5), percentile=[12.5, 37.5, 62.5, 87.5])
    write_table(ranking, place / "ranking.parquet", RANKING)
    write_json({"pairs": ["red_wing", "blue_wing"]}, place / "heldout.json")

    judge = world.FakeJudge()
    # Of "a red wing and a blue bill" it reads the first five words.
    judge.tokenizer = WordTokenizer([*SPECIAL, *world.COLORS], 6)
    monkeypatch.setattr("workflow_scripts.clip.model.load_judge", lambda *_: judge)
    monkeypatch.setattr(log, "propagate", True)
    tables = {name: results / f"d/{name}.parquet" for name in ("captions", "images", "pairs")}
    tables |= {name: place / f"{name}.parquet" for name in ("splits", "ranking")}
    output = tmp_path / "choice.json"
    step = AdjectiveChoice(
        **tables, heldout=place / "heldout.json", results=results, dataset="d", composition="color", choice=output,
        judge=Path("unused"), cache=tmp_path / "cache",
    )  # fmt: skip
    with caplog.at_level("WARNING", "compclip"):
        adjective_choice.main(step)
    found = read_json(output)
    assert found["n"] > 2 and found["captions"] == len(set(judge.texts_seen)) > 2
    assert found["truncated_captions"] == found["captions"], "each has seven words"
    said = f"{found['captions']} of {found['captions']} captions are longer than the model reads; truncated"
    assert said in caplog.text
