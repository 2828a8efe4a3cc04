"""The figures and the page of compound nouns: the paper's numbers and ours, told apart, from made-up tables."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.compun.made_up import DATASET, HOSTILE, analyze_place, make_place
from tests.made_up import make_results
from tests.plot.overlapping import overlapping
from tests.report.pages import Page, write_page
from workflow_scripts.compun import draw_compun, make_compun_page
from workflow_scripts.compun.section import (
    FIGURES,
    beside_lines,
    comparison_lines,
    p_value,
    prompt_words,
    read_analysis,
    text_table,
)
from workflow_scripts.compun.steps import DrawCompun, MakeCompunPage
from workflow_scripts.plot.labels import number
from workflow_scripts.plot.page import described


def make_page(results: Path, *, kinds: bool = True, pictures: bool = True) -> str:
    place = make_place(results, kinds=kinds, pictures=pictures)
    analysis = analyze_place(place, place / "analysis")
    figures = {name: results / "figures" / f"{DATASET}_compun_{name}.svg" for name in FIGURES}
    draw_compun.main(DrawCompun(analysis=analysis, text=results / "compun.md", **figures))
    page = results / "compun.html"
    make_compun_page.main(MakeCompunPage(results=results, dataset=DATASET, page=page, settings={"seed": 7}))
    return (results / "compun.html").read_text()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compun")
    make_page(folder)
    return folder


@pytest.fixture(scope="module")
def text(results: Path) -> str:
    return (results / "compun.html").read_text()


def test_same_data_same_bytes(results: Path, tmp_path: Path, text: str) -> None:
    assert make_page(tmp_path) == text
    for name in FIGURES:
        file = f"figures/{DATASET}_compun_{name}.svg"
        assert (tmp_path / file).read_bytes() == (results / file).read_bytes()


def test_nothing_is_fetched_and_nothing_runs(text: str, results: Path) -> None:
    page = Page(text)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.tags} and "b>other</b" not in text
    for _, attributes in page.tags:
        for link in filter(None, (attributes.get("src"), attributes.get("href"))):
            assert link.startswith("#") or (results / link).is_file(), link
    assert str(results) not in text and HOSTILE not in text and '"seed": 7' in page.text


def test_each_line_says_whose_it_is(text: str, results: Path) -> None:
    rows = [row for row in Page(text).rows if len(row) == 4 and row[0] != "model, prompt" and " of " not in row[1]]
    assert {row[2] for row in rows} == {"the paper", "here"}
    # The paper's as printed; ours as computed, each with its interval.
    assert ["CLIP, template", "78.25", "the paper", "400"] in rows
    assert ["CLIP, 5 example captions", "86.50", "the paper", "400"] in rows
    assert ["CLIP, template", "12.00", "the paper", "400"] in rows
    accuracy = pd.read_csv(results / DATASET / "compun" / "analysis" / "accuracy.csv")
    own = accuracy[(accuracy["model"] == "drawn") & (accuracy["prompt"] == "template")].iloc[0]
    ends = f"[{100 * own['low']:.1f}, {100 * own['high']:.1f}]"
    assert ["drawn, template", f"{100 * own['accuracy']:.1f}{ends}", "here", "59"] in rows
    # The reason stands below, once.
    assert any(row[0] == "ALBEF (not loaded)" for row in rows)
    assert Page(text).text.count("no <i>maintained</i> library") == 1


def test_the_table_has_the_numbers_of_the_usual_prompts(results: Path) -> None:
    lines = [line.strip("| ").split(" | ") for line in (results / "compun.md").read_text().splitlines()]
    accuracy = pd.read_csv(results / DATASET / "compun" / "analysis" / "accuracy.csv")
    shown = [row for row in lines if len(row) == 4][2:]
    assert shown.pop() == ["ALBEF", "–", "not loaded: no <i>maintained</i> library", "–"]
    assert len(shown) == len(accuracy[~accuracy["prompt"].isin(["examples_1", "examples_3"])])
    own = accuracy[(accuracy["model"] == "drawn") & (accuracy["prompt"] == "reversed")].iloc[0]
    ends = f"[{100 * own['low']:.1f}, {100 * own['high']:.1f}]"
    assert ["drawn", "nouns reversed", f"{100 * own['accuracy']:.1f} {ends}", "59"] in shown


def test_a_reason_is_short_in_the_table(results: Path) -> None:
    tables, _ = read_analysis(results / DATASET / "compun" / "analysis")
    reason = "judge: the file a|b is " + "not a judge's folder " * 20
    last = text_table(tables["accuracy"], {"m|n": reason}).split("\n\n")[0].splitlines()[-1]
    cells = [cell.replace("&#124;", "|") for cell in last.strip("| ").split(" | ")]
    said = cells[2].removeprefix("not loaded: ")
    assert cells[0] == "m|n" and len(cells) == 4 and len(said) <= 100
    assert said.endswith(" …") and reason.startswith(said.removesuffix("…"))


def test_each_test_says_of_how_many_and_with_which_others(text: str, results: Path) -> None:
    tables, _ = read_analysis(results / DATASET / "compun" / "analysis")
    groups = comparison_lines(tables["comparisons"])
    assert [name for name, _ in groups] == ["drawn", "<b>other</b>", "models, under each prompt"]
    # A family of Holm's correction is a table: every two of five prompts, and two models by five prompts.
    assert [len(lines) for _, lines in groups] == [10, 10, 5]
    rows = [row for row in Page(text).rows if len(row) == 5 and row[0] != "a − b"]
    assert len(rows) == 25 and any(row[0] == "<b>other</b> − drawn: template" for row in rows)
    assert all(re.fullmatch(r"\d+\u202f:\u202f\d+of 59", row[2]) for row in rows)


def test_people_are_numbered() -> None:
    row = {"table": "1", "whose": "ours", "model": "people", "prompt": None, "value": 0.9, "low": 0.8, "high": 1.0}
    (line,) = beside_lines(pd.DataFrame([row | {"n": 5, "note": "3 kept, 1 left out"}]), "1")
    assert line["name"] == "people (3 kept, 1 left out)"


def test_what_the_page_says(text: str) -> None:
    said = Page(text).text
    assert "1 of 60 lack an image and were not (first59 second59)" in said
    assert "1 of 826 answers are ties" in said and "ALBEF 80.55" in said
    assert "pictures without numbers" in said
    shown = Page(text).by_class("picture")
    assert len(shown) == 3 * 12
    # One image of each three is chosen, in half of them the right one.
    assert len(Page(text).by_class("hit")) == len(Page(text).by_class("miss")) == 6


def test_without_kinds(tmp_path: Path) -> None:
    page = Page(make_page(tmp_path, kinds=False))
    assert "give it a column kind" in page.text
    svg = (tmp_path / "figures" / f"{DATASET}_compun_kinds.svg").read_bytes()
    assert described(svg)[0].startswith("Wrong answers") and not described(svg)[1]


def test_figures_describe_themselves(results: Path) -> None:
    for name in FIGURES:
        title, description = described((results / "figures" / f"{DATASET}_compun_{name}.svg").read_bytes())
        assert title and re.search(r"drawn, .*: −?\d+\.\d", description), name


def test_one_model_and_one_prompt(results: Path) -> None:
    tables, _ = read_analysis(results / DATASET / "compun" / "analysis")
    with draw_compun.style():
        one = tables["beside"][(tables["beside"]["prompt"] == "template") & (tables["beside"]["model"] == "drawn")]
        paper = tables["beside"][tables["beside"]["whose"] == "paper"]
        figure = draw_compun.draw_accuracy(pd.concat([paper, one]))
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert names[0] == "drawn, template" and "CLIP, nouns reversed" in names
        assert draw_compun.draw_examples(paper, tables["accuracy"]).texts[0].get_text().startswith("No model")
        nothing = draw_compun.draw_gains(tables["comparisons"].head(0))
        assert nothing.texts[0].get_text().startswith("There is one prompt")


def test_kinds_say_of_how_many_right_answers(results: Path) -> None:
    kinds = read_analysis(results / DATASET / "compun" / "analysis")[0]["kinds"]
    kinds = kinds[(kinds["model"] == "drawn") & (kinds["kind"] == "both") & ~kinds["prompt"].str.contains("ensemble")]
    some = kinds[kinds["prompt"].isin(["template", "reversed"])].assign(n=[18, 17], right=[9, 1])
    some.loc[some["right"] == 1, ["similarity_low", "similarity_high"]] = None
    with draw_compun.style():
        figure = draw_compun.draw_kinds(some)
    assert "both nouns, n = 17 to 18" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
    right = figure.axes[1]
    assert {"9", "1"} <= {text.get_text() for text in right.texts}
    hollow = [line for line in right.lines if line.get_markerfacecolor() == "white" and line.get_marker() != "None"]
    assert len(hollow) == 1


def test_no_text_lies_on_another(results: Path) -> None:
    tables, _ = read_analysis(results / DATASET / "compun" / "analysis")
    tables["beside"].loc[tables["beside"]["model"] == "drawn", "model"] = "a model with a name that is long indeed"
    with draw_compun.style():
        figures = [draw_compun.draw_kinds(tables["kinds"]), draw_compun.draw_accuracy(tables["beside"])]
    assert [overlapping(figure) for figure in figures] == [[], []]


def test_words() -> None:
    assert number(-0.0004, 3) == "0.000" and number(-0.25, 3) == "−0.250"
    assert prompt_words("examples_1") == "1 example caption"
    assert prompt_words("examples_5_ensemble") == "5 example captions, ensemble"
    assert p_value(0.00001) == "<\u202f0.0001" and p_value(0.5) == "0.5000" and p_value(None) == "–"


def test_a_share_that_400_compounds_cannot_give_is_named(results: Path) -> None:
    tables, _ = read_analysis(results / DATASET / "compun" / "analysis")
    names = [line["name"] for line in beside_lines(tables["beside"], "1")]
    assert names[:3] == ["people", "chance", "ALBEF, template"]


@pytest.mark.slow
def test_the_report_has_the_same_section(tmp_path: Path, text: str) -> None:
    folder = make_results(tmp_path / "results")
    assert "Compound nouns" not in write_page(folder, 1)
    make_page(folder)
    report = write_page(folder, 1, sections=["compun"])
    section = re.search(r'<section id="compound-nouns">\s*<h2>.*?</h2>(.*?)</section>', report, re.S)[1]
    # On a page of its own, headings are linked from the contents.
    assert re.sub(r"<(/?)h\d[^>]*>", r"<\1h>", section).strip() in re.sub(r"<(/?)h\d[^>]*>", r"<\1h>", text)
    assert '<a href="#compound-nouns">' in report
