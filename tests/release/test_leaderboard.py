"""The leaderboard joins submissions: simultaneous intervals, differences of any two, flags and
marks.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.settings.cli import run
from compclip.release import leaderboard, verify
from compclip.release.leaderboard import lines_of
from compclip.release.open_release import Release
from compclip.release.submission import compare_submissions, read_submission
from tests.project import COMPOSITION, GENERATORS
from tests.release.conftest import refused, submit_images


@pytest.fixture(scope="module")
def worse(release: Release, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that lacks every third image, guided by a judge."""
    place = tmp_path_factory.mktemp("worse")
    folder = Path(shutil.copytree(images, place / "images"))
    for file in sorted(folder.rglob("*.png"))[::3]:
        file.unlink()
    options = ("--missing", "--judge-weights", "guided")
    return submit_images(release, folder, place / "submission.json", *options, name="worse")


def make(release: Release, output: Path, *arguments: object) -> dict[str, Any]:
    """Make the page, and return its data."""
    given = [*arguments, "--release", release.folder, "--output", output]
    run(leaderboard.main, [*map(str, given)], "compclip leaderboard")
    page = output.read_text()
    assert not re.search(r'(src|href)="(?!#)', page), "a page of one file"
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])["compositions"][COMPOSITION]


def test_submissions_are_compared(
    release: Release, submitted: Path, worse: Path, images: Path, tmp_path: Path
) -> None:
    cache = release.folder.parent / "cache"
    record = ["--images", images, "--record", tmp_path / "verified.json", "--cache", cache]
    run(
        verify.main,
        [*map(str, [submitted, "--release", release.folder, *record])],
        "compclip verify",
    )
    places = [submitted.parent, worse, "--verified", tmp_path / "verified.json"]
    data = make(release, tmp_path / "leaderboard.html", *places)
    lines = {line["name"]: line for line in data["lines"]}
    assert {*lines} == {"mine", "worse", *GENERATORS}
    assert lines["mine"]["verified"] and not lines["worse"]["verified"]
    assert [lines[name].get("judge_weights") for name in ("mine", "worse", "faithful")] == [
        "none",
        "guided",
        None,
    ]
    assert lines["faithful"]["control"] and not lines["mine"]["control"]

    def difference(split: str) -> Any:
        rows = [
            of
            for of in data["differences"]
            if {of["a"], of["b"]} == {"mine", "worse"} and of["split"] == split
        ]
        return next(of for of in rows if of["measure"] == "R-precision")

    for split in ("seen", "unseen", "swapped"):
        values = [
            lines[name]["cells"][f"R-precision, {split}"]["value"] for name in ("mine", "worse")
        ]
        of = difference(split)
        assert of["difference"] == pytest.approx(values[0] - values[1], abs=2e-6)
        assert of["new_pairs_low"] <= of["difference"] <= of["new_pairs_high"]


def test_lines_have_estimates_and_verdicts_of_models_of_this_split(
    release: Release, submitted: Path, worse: Path
) -> None:
    part = release.part(COMPOSITION)
    given = [
        (name, read_submission(file, release))
        for name, file in (("mine", submitted), ("worse", worse))
    ]
    judges = [(name, of.compositions[COMPOSITION].judges) for name, of in given]
    scores = compare_submissions(part, judges).scores
    by_name = {
        line["name"]: line for line in lines_of(part, scores, {"mine": "split", "worse": "unknown"})
    }
    assert (
        by_name["faithful"]["verdict"] == "reference"
        and by_name["faithful"]["cells"]["composes"]["value"] == 1
    )
    assert by_name["memorizer"]["verdict"] == "usual pair"
    for name in ("mine", "worse"):
        assert by_name[name]["verdict"] in ("no verdict", "does not draw seen pairs"), (
            "the small judge is not fit"
        )
        assert {"composes", "draws seen pairs", "composes, unseen"} <= set(by_name[name]["cells"])


def test_what_cannot_be_compared_is_refused(
    release: Release, submitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = read_json(submitted)
    write_json(content, tmp_path / "twin" / "submission.json")
    content["scores"][0]["value"] = 0.5
    write_json(content | {"name": "other"}, tmp_path / "wrong" / "submission.json")
    (tmp_path / "empty").mkdir()
    for place, message in (
        ("twin", "has the same name (mine) as "),
        ("wrong", "follows from the values; remove it, or submit again"),
        ("empty", "no submission.json; give the folder of a submission"),
    ):
        page = tmp_path / "leaderboard.html"
        assert message in refused(capsys, make, release, page, submitted, tmp_path / place)
