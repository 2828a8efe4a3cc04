"""The figures and the page of compound nouns: the paper's numbers and ours, told apart, from made-up tables."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.compun.made_up import DATASET, HOSTILE, analyze_place, make_place
from tests.plot.overlapping import overlapping
from tests.report.pages import Page
from workflow_scripts.compun import draw_compun
from workflow_scripts.compun.section import FIGURES, read_analysis
from workflow_scripts.compun.steps import DrawCompun
from workflow_scripts.plot.page import described


def make_page(results: Path, *, kinds: bool = True) -> str:
    place = make_place(results, kinds=kinds)
    analysis = analyze_place(place, place / "analysis.csv")
    figures = {name: results / "figures" / f"{DATASET}_compun_{name}.svg" for name in FIGURES}
    page, about = results / "compun.html", {"results": results, "dataset": DATASET, "settings": {"seed": 7}}
    draw_compun.main(DrawCompun(analysis=analysis, text=results / "compun.md", page=page, **about, **figures))
    return page.read_text()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compun")
    make_page(folder)
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Page:
    return Page((results / "compun.html").read_text())


@pytest.fixture(scope="module")
def analysis(results: Path) -> pd.DataFrame:
    return read_analysis(results / DATASET / "compun" / "analysis.csv")


def test_same_data_same_bytes(results: Path, tmp_path: Path) -> None:
    make_page(tmp_path)
    for name in ("compun.html", "compun.md", *(f"figures/{DATASET}_compun_{name}.svg" for name in FIGURES)):
        assert (tmp_path / name).read_bytes() == (results / name).read_bytes()


def test_nothing_is_fetched_and_nothing_runs(page: Page, results: Path) -> None:
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        source = dict(attributes).get("src")
        assert source is None or (results / source.replace("%20", " ")).is_file(), source
    assert HOSTILE not in (results / "compun.html").read_text() and "<b>other</b>" in page.text


def test_the_page_tells_the_papers_numbers_from_ours(page: Page, analysis: pd.DataFrame) -> None:
    row = analysis.query("model == 'drawn' and prompt == 'reversed' and measure == 'right'").iloc[0]
    ends = f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    lines = {line[0]: line[1:] for line in page.rows if len(line) == 4}
    ours = lines["drawn, nouns reversed"]
    assert ours[0] == f"{100 * row['value']:.1f}{ends}" and ours[2] == "59"
    assert lines["the paper: CLIP, nouns reversed"] == ["41.00", "–", "400"]
    assert lines["the paper: CLIP, template"] == ["78.25", "12.0", "400"]
    assert "1 of 708 answers are ties" in page.text and "1 lack an image and were not (first59 second59)" in page.text
    # One of 400 is 0.25 %.
    assert "ALBEF 80.55, BLIP 79.85, MetaCLIP 81.35, CLIP 81.15, OpenCLIP 83.90 are not fractions" in page.text


def test_examples_are_half_wrong(page: Page) -> None:
    assert len(page.by_class("picture")) == 3 * 12
    # One image of each three is chosen, in half of them the right one.
    assert len(page.by_class("hit")) == len(page.by_class("miss")) == 6


def test_differences_are_on_the_page(page: Page, analysis: pd.DataFrame) -> None:
    count = analysis["measure"].str.startswith("minus").sum()
    assert sum(" − " in line[0] for line in page.rows if line[0] != "a − b") == count == 2 * 3 + 4
    assert any(line[0] == "<b>other</b>, template − drawn" for line in page.rows)


def test_the_text_table(results: Path) -> None:
    lines = [line.strip("| ").split(" | ") for line in (results / "compun.md").read_text().splitlines()]
    assert [line[1] for line in lines[2:6]] == ["template", "nouns reversed", "descriptions", "5 example captions"]
    assert {line[0] for line in lines[2:10]} == {"drawn", "<b>other</b>"} and {line[3] for line in lines[2:10]} == {
        "59"
    }


def test_figures_describe_themselves(results: Path) -> None:
    for name in FIGURES:
        title, description = described((results / "figures" / f"{DATASET}_compun_{name}.svg").read_bytes())
        assert title and re.search(r"drawn, .*: −?\d+\.\d", description), name


def test_without_kinds(tmp_path: Path) -> None:
    assert "give it a column kind" in Page(make_page(tmp_path, kinds=False)).text
    svg = (tmp_path / "figures" / f"{DATASET}_compun_kinds.svg").read_bytes()
    assert described(svg)[0].startswith("Wrong answers") and not described(svg)[1]


def test_no_text_lies_on_another(analysis: pd.DataFrame) -> None:
    long = analysis.assign(model=analysis["model"].replace("drawn", "a model with a name that is long indeed"))
    with draw_compun.style():
        figures = [draw_compun.draw_kinds(long), draw_compun.draw_accuracy(long), draw_compun.draw_examples(long)]
        nothing = draw_compun.draw_examples(analysis[analysis["prompt"] == "template"])
    assert [overlapping(figure) for figure in figures] == [[], [], []]
    assert nothing.texts[0].get_text().startswith("No model")
