"""The leaderboard joins submissions: simultaneous intervals, differences of any two, flags and
marks.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.settings.cli import run
from compclip.plot.labels import interval, percent
from compclip.plot.table_view import NONE
from compclip.release import leaderboard, verify
from compclip.release.leaderboard import COMPOSES_NEW, columns_of_page, lines_of, marks_of
from compclip.release.open_release import Release
from compclip.release.submission import compare_submissions, read_submission
from compclip.report.summary import score_views
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


@pytest.fixture(scope="module")
def page(
    release: Release, submitted: Path, worse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    file = tmp_path_factory.mktemp("page") / "leaderboard.html"
    make(release, file, submitted.parent, worse)
    return file


def test_cautions_are_marked_beside_names(
    release: Release, submitted: Path, worse: Path, tmp_path: Path
) -> None:
    data = make(release, tmp_path / "leaderboard.html", submitted.parent, worse)
    marks = {line["name"]: line["marks"] for line in data["lines"]}
    assert marks["mine"] == ["training data unknown"]
    assert marks["worse"] == ["guided", "training data unknown"]
    assert marks["faithful"] == ["control"]


def test_repeated_images_are_marked(release: Release, submitted: Path) -> None:
    submission = read_submission(submitted, release)
    repeating = submission.model_copy(update={"repeats_images": True, "training_data": "split"})
    assert marks_of(repeating, verified=True) == ["verified", "repeats images"]


def test_intervals_are_those_of_the_report(
    release: Release, submitted: Path, tmp_path: Path
) -> None:
    """For the same pairs of what is composed, else for new pairs, as its columns say."""
    part = release.part(COMPOSITION)
    judges = read_submission(submitted, release).compositions[COMPOSITION].judges
    scores = compare_submissions(part, [("mine", judges)]).scores
    views = score_views(scores)
    report = {}
    for view in (*views["composed"], *views["scores"]):
        for line in view.lines:
            for column, cell in zip(view.columns, line.cells, strict=True):
                report[line.name, view.title, column] = str(cell or NONE)
    (lines,) = [lines_of(part, scores, {})]
    columns = {column["name"]: column for column in columns_of_page()}
    for line in lines:
        for name, cell in line["cells"].items():
            digits = 0 if columns[name]["table"] == "composed" else 1
            title, split = ("What is composed", name)
            if columns[name]["table"] == "scores":
                title, split = name.split(", ")
            shown = NONE
            if cell:
                ends = interval(cell["low"], cell["high"], digits)
                value = "" if name == COMPOSES_NEW else percent(cell["value"], digits)
                shown = f"{value} {ends}".strip() or NONE
            assert shown == report.get((line["name"], title, split), NONE)


def test_a_link_names_the_models_to_compare(open_page: Callable[..., Any], page: Path) -> None:
    shown = open_page(page, "#compare=worse,mine")
    heads = shown.locator(".compared thead th").all_inner_texts()
    assert heads[1:4] == ["worse", "mine", "worse − mine"]


def test_a_link_to_an_unknown_model_is_said(open_page: Callable[..., Any], page: Path) -> None:
    shown = open_page(page, "#compare=mine,nobody")
    assert "The link names nobody" in shown.locator("#unknown").inner_text()


def test_the_link_of_a_choice_leads_to_it(open_page: Callable[..., Any], page: Path) -> None:
    shown = open_page(page)
    shown.select_option("select[name=a]", "usual")
    shown.select_option("select[name=b]", "worse")
    assert shown.url.endswith(f"#compare=usual,worse&composition={COMPOSITION}")


def test_a_difference_is_reversed_with_its_models(
    open_page: Callable[..., Any], page: Path
) -> None:
    def numbers(fragment: str) -> list[float]:
        rows = open_page(page, fragment).locator(".compared tbody tr")
        row = rows.filter(has_text="R-precision, unseen")
        text = row.locator("td").nth(2).inner_text().replace("−", "-")
        return [float(number) for number in re.findall(r"-?\d+\.\d", text)]

    value, low, high = numbers("#compare=mine,worse")
    assert numbers("#compare=worse,mine") == [0 - value, 0 - high, 0 - low]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(
    open_page: Callable[..., Any], page: Path, width: int
) -> None:
    shown = open_page(page, "#compare=mine,worse", viewport={"width": width, "height": 900})
    wide = """() => [...document.querySelectorAll("main *")].filter(
        (of) => of.getBoundingClientRect().right > innerWidth || of.scrollWidth > innerWidth)
        .map((of) => of.textContent)"""
    assert shown.evaluate(wide) == []


def test_no_interval_breaks(open_page: Callable[..., Any], page: Path) -> None:
    shown = open_page(page, "#compare=mine,worse", viewport={"width": 390, "height": 900})
    broken = """() => [...document.querySelectorAll("td small")]
        .filter((of) => of.getClientRects().length > 1 || of.clientHeight > 30)
        .map((of) => of.textContent)"""
    assert shown.evaluate(broken) == []


@pytest.mark.parametrize(
    ("value", "text"), [(-0.0004, "0.0"), (-0.001, "−0.1"), (0.1225, "12.2"), (1.06, "106.0")]
)
def test_numbers_are_rounded_as_in_the_report(
    open_page: Callable[..., Any], page: Path, value: float, text: str
) -> None:
    assert open_page(page).evaluate(f"percent({value}, 1)") == percent(value) == text


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
