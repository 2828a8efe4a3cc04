"""The figures and the page of compound nouns: the paper's numbers and ours, told apart, of the small run."""

import re
from pathlib import Path

import pandas as pd
import pytest

from compclip.compun.draw_compun import draw_accuracy, draw_examples, draw_kinds
from compclip.compun.shown import COMPUN_FIGURES, read_analysis, shown_compounds
from compclip.plot.drawing import style
from compclip.plot.page import title_and_description
from tests.compun.conftest import COMPLETE, HOSTILE, MODELS, change, copy_stage, read
from tests.plot.overlapping import overlapping
from tests.project import DATASET
from tests.report.pages import Page
from tests.scripts import job
from workflow_scripts.compun import analyze_choices, draw_compun


def make_page(place: Path) -> Page:
    """Analyze the choices in the stage's folder as the small run does, draw them, and return the page."""
    results, analysis = place.parents[1], place / "analysis.csv"
    inputs = {"compounds": place / "compounds.parquet", "choices": place / "choices"}
    analyze_choices.main(job(inputs, {"analysis": analysis}, seed=0))
    figures = {name: results / "figures" / f"{DATASET}_compun_{name}.svg" for name in COMPUN_FIGURES}
    writes = {"text": results / "compun.md", "page": results / "compun.html", **figures}
    settings = {"compun": "</pre><script>"}
    draw_compun.main(job({"analysis": analysis}, writes, results=results, dataset=DATASET, settings=settings))
    return Page(writes["page"].read_text())


@pytest.fixture(scope="module")
def page(place: Path) -> Page:
    return make_page(place)


@pytest.fixture(scope="module")
def analysis(page: Page, place: Path) -> pd.DataFrame:
    return read_analysis(place / "analysis.csv")


def test_nothing_is_fetched_or_runs_and_texts_describe_the_results(page: Page, place: Path) -> None:
    """The Markdown table, and the descriptions of the figures."""
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        source = dict(attributes).get("src")
        assert source is None or (place.parents[1] / source.replace("%20", " ")).is_file(), source
    assert HOSTILE not in (place.parents[1] / "compun.html").read_text()
    assert f"1 lack an image and were not ({HOSTILE})" in page.text and MODELS[1] in page.text
    lines = [line.strip("| ").split(" | ") for line in (place.parents[1] / "compun.md").read_text().splitlines()]
    prompts = ("template", "nouns reversed", "descriptions", "5 example captions")
    assert [line[0].strip() for line in lines[2:10]] == [f"{model}, {prompt}" for model in MODELS for prompt in prompts]
    assert {line[-1].strip() for line in lines[2:10]} == {str(COMPLETE)}
    for name in COMPUN_FIGURES:
        title, text = title_and_description(
            (place.parents[1] / "figures" / f"{DATASET}_compun_{name}.svg").read_bytes()
        )
        assert title and re.search(r"untaught, .*: −?\d+\.\d", text), name


def test_the_page_tells_the_papers_numbers_from_ours_and_no_text_lies_on_another(
    page: Page, analysis: pd.DataFrame
) -> None:
    row = analysis.query("model == 'untaught' and prompt == 'reversed' and measure == 'right'").iloc[0]
    ends = f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    lines = {line[0]: line[1:] for line in page.rows if len(line) == 4}
    ours = lines["untaught, nouns reversed"]
    assert ours[0] == f"{100 * row['value']:.1f}{ends}" and ours[2] == str(COMPLETE)
    assert lines["the paper: CLIP, nouns reversed"] == ["41.00", "–", "400"]
    assert lines["the paper: CLIP, template"] == ["78.25", "12.0", "400"]
    assert f"1 of {2 * 10 * COMPLETE} answers are ties" in page.text
    count = analysis["measure"].str.startswith("minus").sum()
    assert sum(" − " in line[0] for line in page.rows if line[0] != "a − b") == count == 2 * 3 + 4
    assert any(line[0] == f"{MODELS[1]}, template − untaught" for line in page.rows)
    long = analysis.assign(model=analysis["model"].replace("untaught", "a model with a name that is long indeed"))
    with style():
        figures = [draw_kinds(long), draw_accuracy(long), draw_examples(long)]
        nothing = draw_examples(analysis[analysis["prompt"] == "template"])
    assert [overlapping(figure) for figure in figures] == [[], [], []]
    assert nothing.texts[0].get_text().startswith("No model")


def test_examples_are_half_wrong(page: Page, place: Path) -> None:
    choices = read(place, "choices/choices")
    right = choices.loc[(choices["model"] == MODELS[0]) & (choices["prompt"] == "template"), "right"].sum()
    assert len(page.by_class("picture")) == 3 * 12 and 0 < right <= COMPLETE - 6
    # One image of each three is chosen, in half of them the right one, if there are as many.
    hits = min(right, 6)
    assert len(page.by_class("hit")) == hits and len(page.by_class("miss")) == 12 - hits
    halves = choices.assign(right=choices.index % 2 == 0)
    shown = shown_compounds(halves, read(place, "images"), read(place, "compounds"), "")["compounds"]
    assert [row["right"] for row in shown] == [False] * 6 + [True] * 6


def test_without_kinds(of_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = copy_stage(of_run, tmp_path)
    change(place, "compounds", lambda table: table.assign(kind=pd.Series(None, table.index, "str")))
    assert "give it a column kind" in make_page(place).text
    assert "no compound has a kind" in caplog.text and "wrong, " not in (place / "analysis.csv").read_text()
    title, text = title_and_description((tmp_path / "figures" / f"{DATASET}_compun_kinds.svg").read_bytes())
    assert title.startswith("Wrong answers") and not text
