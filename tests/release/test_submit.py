"""A submission has the figures of the table, from a release alone and a light installation."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from compclip.core.artifacts.files import read_json
from compclip.core.identity.code import ROOT
from compclip.core.settings.cli import run
from compclip.core.tables import MEASUREMENTS
from compclip.plot.labels import interval, percent
from compclip.release import verify
from compclip.release.open_release import Release
from compclip.release.submission import look, read_submission
from compclip.report.measures import MEASURES
from compclip.stats.estimates import INTERVAL_COLUMNS
from tests.project import COMPOSITION
from tests.release.conftest import refused, submit_images

# What a light installation lacks: importing one fails.
ABSENT = ("spacy", "snakemake", "dvc", "pooch", "thinc")
BLOCKED = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from compclip.__main__ import main
main()
"""


def copied(images: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(images, tmp_path / "images"))


def rows(file: Path) -> pd.DataFrame:
    return pd.DataFrame(read_json(file)["scores"])


def test_figures_are_those_of_the_table(submitted: Path, table: pd.DataFrame) -> None:
    place = ["split", "prompts", "distractors", "measure"]
    # What the reference draws is fixed by definition, and estimated of the same images under
    # another name.
    estimates = ("composes", "draws_seen_pairs", "draws_held_out_pairs")
    table, own = (of[~of["measure"].isin(estimates)] for of in (table, rows(submitted)))
    joined = table.merge(own, on=place, how="outer", suffixes=("", "_submitted"), indicator=True)
    assert (joined["_merge"] == "both").all()
    for name in ("value", *INTERVAL_COLUMNS, "n", "se_pairs"):
        submitted_values = joined[f"{name}_submitted"].astype("float64")
        pd.testing.assert_series_equal(
            submitted_values, joined[name].astype("float64"), check_names=False
        )
    assert set(joined["measure"]) <= set(MEASURES) and {*rows(submitted)} == {*MEASUREMENTS.columns}


def test_the_page_is_one_file(submitted: Path) -> None:
    page = submitted.with_suffix(".html").read_text()
    assert "mine on sketch 1.0.0" in page and "data:image/svg+xml" in page
    assert 'src="http' not in page and "<link" not in page


def test_missing_images_count_as_wrong_if_accepted(
    release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(images, tmp_path)
    first, second = sorted((folder / "sketch" / COMPOSITION / "test_unseen").rglob("*.png"))[:2]
    first.unlink()
    second.write_bytes(b"no image")
    error = refused(capsys, submit_images, release, folder, tmp_path / "submission.json")
    assert "2 of " in error and "are missing or broken" in error
    file = submit_images(release, folder, tmp_path / "submission.json", "--missing")
    of = read_submission(file, release).compositions[COMPOSITION]
    assert sorted(digest for digest in of.images.values() if len(digest) < 64) == [
        "broken",
        "missing",
    ]
    values = of.judges["0"].values["test_unseen"]
    assert sum(value is None for value in values["similarity"]) == 2
    assert all(
        hit is False
        for hit, own in zip(values["hit"], values["similarity"], strict=True)
        if own is None
    )


@pytest.fixture(scope="module")
def repeating(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images as of a memorizer: those of unseen prompts are all the same."""
    folder = copied(images, tmp_path_factory.mktemp("repeating"))
    first, *others = sorted((folder / "sketch" / COMPOSITION / "test_unseen").rglob("*.png"))
    for file in others:
        shutil.copyfile(first, file)
    return folder


@pytest.fixture(scope="module")
def repeated(release: Release, repeating: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("repeated") / "submission.json"
    return submit_images(release, repeating, file, "--allow-equal", name="memory")


def test_images_that_repeat_for_other_texts_are_refused(
    release: Release, repeating: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, submit_images, release, repeating, tmp_path / "submission.json")
    assert "images are equal to that of another text" in error and "--allow-equal" in error


def test_repeated_images_are_recorded_if_allowed(release: Release, repeated: Path) -> None:
    assert read_submission(repeated, release).repeats_images


def test_a_page_says_that_images_repeat(repeated: Path, submitted: Path) -> None:
    pages = [file.with_suffix(".html").read_text() for file in (repeated, submitted)]
    assert ["repeats images" in page for page in pages] == [True, False]


def test_repeated_images_are_verified(
    release: Release,
    repeating: Path,
    repeated: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"release": release.folder, "images": repeating, "cache": release.folder / "../cache"}
    options = [f"--{name}={place}" for name, place in places.items()]
    run(verify.main, [str(repeated), *options], "compclip verify")
    assert capsys.readouterr().out.startswith("verified: all values and figures of memory")


def test_scores_are_printed_with_their_intervals(
    release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = submit_images(release, images, tmp_path / "submission.json")
    printed = capsys.readouterr().out
    table = rows(file)
    table = table[(table["split"] == "test_unseen") & (table["measure"] == "r_precision")]
    low, high = (interval(*table[["new_pairs_low", "new_pairs_high"]].iloc[0])[1:-1]).split(", ")
    value = percent(table["value"].iloc[0])
    assert re.search(rf"^unseen +{value} \[{low}, {high}\]", printed, re.MULTILINE)


def test_the_verdict_is_printed(
    release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submit_images(release, images, tmp_path / "submission.json")
    assert "\nmine: no verdict: " in capsys.readouterr().out


def test_images_of_several_sizes_are_refused(
    release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(images, tmp_path)
    file = sorted(folder.rglob("*.png"))[0]
    Image.open(file).resize((20, 20)).save(file)
    error = refused(capsys, submit_images, release, folder, tmp_path / "submission.json")
    assert "have 2 sizes" in error and "1 of 20 x 20 pixels" in error and "--sizes" in error


def test_a_name_of_a_control_is_refused(
    release: Release, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(
        capsys, submit_images, release, images, tmp_path / "submission.json", name="faithful"
    )
    assert "--name: faithful is a control of the release; choose another name" in error


def test_a_light_installation_is_enough(
    release: Release, images: Path, submitted: Path, tmp_path: Path
) -> None:
    def compclip(*arguments: object) -> str:
        command = [sys.executable, "-c", BLOCKED, *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    compclip("submit", "--release", release.folder, "--images", images, "--name", "mine")
    assert (tmp_path / "submission.json").read_bytes() == submitted.read_bytes()
    assert "verified" in compclip(
        "verify", "submission.json", "--release", release.folder, "--images", images
    )
    compclip("leaderboard", tmp_path, "--release", release.folder)
    assert (tmp_path / "leaderboard.html").is_file()


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("rnemorizer", "memorizer"),
        ("m3morizer", "memorizer"),
        ("5huffled", "shuffled"),
        ("pair_ph0t0graph5", "pair_photographs"),
        ("unbouncl", "unbound"),
        ("un-bound", "unbound"),
        ("faithful_", "faithful"),
        ("F-A-I-T-H-F-U-L", "faithful"),
        ("real_i", "real-1"),
        ("c-lef", "def"),
    ],
)
def test_names_that_look_alike_are_equal(name: str, control: str) -> None:
    assert look(name) == look(control)
    assert look(f"{name}2") != look(control)
