"""Do the small CLIPs show what the benchmark measures? Two are trained for seconds, and asked of drawn compounds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from workflow_scripts.compun.analyze_choices import Estimator, compare
from workflow_scripts.compun.config import TRAININGS
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.tables import CHOICES
from workflow_scripts.judge.config import JudgeConfig

DRAWN = {"tested": 72, "others": 30, "things": 1600, "pairs": 400, "each": 6}


def call(module: str, **options: object) -> None:
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    subprocess.run([sys.executable, "-m", f"workflow_scripts.{module}", *given], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Columns of CHOICES, and of each compound its kind and whether it is one word."""
    root = tmp_path_factory.mktemp("small")
    place = root / "d"
    drawn, training = place / "drawn", place / "drawn" / "training"
    call("compun.draw_compounds", **DRAWN, results=root, output=drawn)
    settings = JudgeConfig(epochs=5, batch=64, captions=2, lr=0.005, device="cpu").model_dump_json()
    for name in TRAININGS:
        tables = {"captions": training / "captions.parquet", "images": training / "images.parquet"}
        call("judge.train_judge", **tables, splits=training / f"{name}.parquet", results=root, settings=settings,
             threads=1, cache=root / "cache", folder=place / name)  # fmt: skip
    call("compun.load_compounds", file=drawn / "list.csv", images=drawn / "images", output=place, cache=root / "cache")
    models = [{"name": name, "judge": str(place / name)} for name in TRAININGS]
    call("compun.classify", compounds=place / "compounds.parquet", images=place / "images.parquet",
         folder=place / "images", captions=drawn / "captions.json", descriptions=drawn / "descriptions.json",
         examples=5, templates="none", models=json.dumps(models), threads=1, device="cpu", cache=root / "cache",
         output=place / "choices")  # fmt: skip
    listed = pd.read_csv(drawn / "list.csv").set_index("compound")["kind"]
    table = pd.read_parquet(Path(place / "choices" / "choices.parquet"))
    return table.assign(kind=table["compound"].map(listed), one_word=~table["compound"].str.contains(" "))


def gain(choices: pd.DataFrame, between: str, fixed: str, a: str, b: str) -> pd.Series:
    """The difference a - b with its interval, as the stage compares."""
    own = choices[list(CHOICES.columns)]
    other = "model" if between == "prompt" else "prompt"
    own = own[(own[other] == fixed) & own[between].isin([a, b])]
    order = own[between].map({b: 0, a: 1})
    return compare(own.iloc[order.argsort(kind="stable")], between, Estimator(500, 0)).iloc[0]


def test_example_captions_help_where_the_compound_is_new(choices: pd.DataFrame) -> None:
    for prompt in ("examples_1", "examples_5", "descriptions"):
        found = gain(choices, "prompt", "untaught", prompt, "template")
        assert found["low"] > 0 and found["p_exact"] < 0.01, prompt


def test_a_compound_that_was_taught_is_known_by_its_name(choices: pd.DataFrame) -> None:
    assert gain(choices, "model", "template", "taught", "untaught")["low"] > 0.2
    # But not with its nouns reversed, where the names are as new as to the other.
    assert gain(choices, "prompt", "taught", "template", "reversed")["low"] > 0.2


def test_a_new_compound_that_shows_neither_noun_is_taken_for_one_of_them(choices: pd.DataFrame) -> None:
    own = choices[(choices["model"] == "untaught") & (choices["prompt"] == "template") & ~choices["one_word"]]
    shares = own.groupby("kind")["right"].mean()
    assert shares["none"] <= 1 / 6
    assert shares["none"] <= shares["both"]
