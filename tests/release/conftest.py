"""A release of the small run, and a submission of its faithful images."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from compclip.core.artifacts.parquet import read_table
from compclip.core.settings.cli import run
from compclip.core.tables import MEASUREMENTS
from compclip.generate.write_manifest import write_manifest
from compclip.release import submit
from compclip.release.open_release import Release, open_release
from compclip.score.config import Scoring
from tests.project import COMPOSITION, DATASET
from tests.report.pages import RUN
from tests.scripts import job
from workflow_scripts.release import make_release

SEEN = {
    "train_on": "half",
    "judge_half": 0,
    "seed": 0,
    "prompts": "pairs",
    "batch": 256,
    "device": "cpu",
    "threads": 2,
}


def write_release(results: Path, folder: Path, **config: object) -> Path:
    """Write a release of the small run, as its rule does."""
    params = RUN | SEEN | {"results": results, "cache": folder.parent / "cache"}
    params |= {
        "further": {},
        "leading": "judge",
        "release": config,
        "scoring": Scoring(candidates=10).model_dump(mode="json"),
    }
    make_release.main(job({}, {"release": folder}, **params))
    return folder


@pytest.fixture(scope="session")
def release(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return open_release(write_release(results, tmp_path_factory.mktemp("released") / "release"))


@pytest.fixture(scope="session")
def images(results: Path, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The faithful images by file_name, as a model would have drawn them, and their manifest."""
    made = results / DATASET / COMPOSITION / "generated" / "faithful" / "images"
    folder = Path(shutil.copytree(made, tmp_path_factory.mktemp("drawn") / "images"))
    write_manifest(folder, release.part(COMPOSITION).tables["prompts"])
    return folder


def submit_images(
    release: Release, images: Path, output: Path, *options: str, name: str = "mine"
) -> Path:
    """Submit images by the command."""
    places = {
        "release": release.folder,
        "images": images,
        "cache": release.folder.parent / "cache",
        "output": output,
    }
    given = [f"--{option}={place}" for option, place in places.items()]
    run(submit.main, [*given, "--name", name, *options], "compclip submit")
    return output


def refused(
    capsys: pytest.CaptureFixture[str], call: Callable[..., object], *arguments: Any, **options: Any
) -> str:
    """Check that a call exits with 1, and return what it prints."""
    with pytest.raises(SystemExit, match="1"):
        call(*arguments, **options)
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.fixture(scope="session")
def submitted(release: Release, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return submit_images(release, images, tmp_path_factory.mktemp("mine") / "submission.json")


@pytest.fixture(scope="session")
def table(results: Path) -> pd.DataFrame:
    """The rows of faithful in the table of the run, by trained judges."""
    rows = read_table(results / "scores.parquet", MEASUREMENTS)
    return rows[(rows["generator"] == "faithful") & (rows["judge"] != "oracle")].reset_index(
        drop=True
    )
