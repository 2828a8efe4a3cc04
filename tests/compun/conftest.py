"""The small run's compounds; one has a hostile name and lacks an image, one answer is a tie, one
model is hostile.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS
from tests.project import DATASET, Project

FILES = {"compounds": COMPOUNDS, "images": COMPOUND_IMAGES, "choices/choices": CHOICES}
COMPLETE = 23
HOSTILE = "<script>alert(1)</script> & pot"
MODELS = ("untaught", "<b>taught</b>")


def read(place: Path, name: str) -> pd.DataFrame:
    return read_table(place / f"{name}.parquet", FILES[name])


def change(place: Path, name: str, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    write_table(edit(read(place, name)), place / f"{name}.parquet", FILES[name])


@pytest.fixture(scope="session")
def of_run(first_run: Project) -> Path:
    """The stage's folder of the small run."""
    return first_run.root / "results" / DATASET / "compun"


def copy_stage(of_run: Path, folder: Path) -> Path:
    """Copy the stage's folder to ``folder``, a results folder, without what pages and analyses do
    not read.
    """
    ignored = shutil.ignore_patterns("judges", "training", "analysis.csv")
    return Path(shutil.copytree(of_run, folder / DATASET / "compun", ignore=ignored))


@pytest.fixture(scope="module")
def place(of_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A changed copy."""
    place = copy_stage(of_run, tmp_path_factory.mktemp("results"))
    last = read(place, "compounds")["compound"].iloc[COMPLETE]

    def named(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(compound=table["compound"].replace(last, HOSTILE))

    def tied(choices: pd.DataFrame) -> pd.DataFrame:
        choices.loc[0, ["similarity_compound", "similarity_n1", "answer", "right"]] = (
            0.9,
            0.9,
            "n1",
            False,
        )
        choices["model"] = choices["model"].replace("taught", MODELS[1])
        return choices[choices["compound"] != last].reset_index(drop=True)

    change(place, "compounds", lambda table: named(table).assign(complete=table.index < COMPLETE))
    lacking = (table := read(place, "images"))["compound"].eq(last) & table["role"].eq("n2")
    change(place, "images", lambda table: named(table).assign(path=table["path"].mask(lacking)))
    change(place, "choices/choices", tied)
    return place
