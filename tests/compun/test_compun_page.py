"""The analysis of choices, and the figures and the page that tell the paper's numbers from ours."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.compun.analyze_choices import ANALYSIS_COLUMNS, analyze_choices
from compclip.compun.compun_view import COMPUN_FIGURES, read_analysis, shown_compounds
from compclip.compun.draw_compun import draw_accuracy, draw_examples, draw_kinds
from compclip.core.artifacts.parquet import check_table
from compclip.core.tables import CHOICES
from compclip.plot.drawing import style
from compclip.plot.page import title_and_description
from compclip.stats.paired import holm
from tests.compun.conftest import COMPLETE, HOSTILE, MODELS, change, copy_stage, read
from tests.plot.overlapping import overlapping
from tests.project import DATASET
from tests.report.pages import Page
from tests.scripts import job
from tests.specs.evaluated import refused
from workflow_scripts.compun import analyze_choices as script
from workflow_scripts.compun import draw_compun


def make_page(place: Path) -> Page:
    """Analyze the choices in the stage's folder as the small run does, draw them, and return the
    page.
    """
    results, analysis = place.parents[1], place / "analysis.csv"
    inputs = {"compounds": place / "compounds.parquet", "choices": place / "choices"}
    script.main(job(inputs, {"analysis": analysis}, seed=0))
    figures = {
        name: results / "figures" / f"{DATASET}_compun_{name}.svg" for name in COMPUN_FIGURES
    }
    writes = {"text": results / "compun.md", "page": results / "compun.html", **figures}
    settings = {"compun": "</pre><script>"}
    draw_compun.main(
        job({"analysis": analysis}, writes, results=results, dataset=DATASET, settings=settings)
    )
    return Page(writes["page"].read_text())


@pytest.fixture(scope="module")
def page(place: Path) -> Page:
    return make_page(place)


@pytest.fixture(scope="module")
def analysis(page: Page, place: Path) -> pd.DataFrame:
    return read_analysis(place / "analysis.csv")


def test_texts_and_examples_show_the_results_and_nothing_is_fetched_or_runs(
    page: Page, place: Path
) -> None:
    """The Markdown table, and the descriptions of the figures."""
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        source = dict(attributes).get("src")
        assert source is None or (place.parents[1] / source.replace("%20", " ")).is_file(), source
    assert HOSTILE not in (place.parents[1] / "compun.html").read_text()
    assert f"1 lack an image and were not ({HOSTILE})" in page.text and MODELS[1] in page.text
    lines = [
        line.strip("| ").split(" | ")
        for line in (place.parents[1] / "compun.md").read_text().splitlines()
    ]
    prompts = ("template", "nouns reversed", "descriptions", "5 example captions")
    assert [line[0].strip() for line in lines[2:10]] == [
        f"{model}, {prompt}" for model in MODELS for prompt in prompts
    ]
    assert {line[-1].strip() for line in lines[2:10]} == {str(COMPLETE)}
    for name in COMPUN_FIGURES:
        title, text = title_and_description(
            (place.parents[1] / "figures" / f"{DATASET}_compun_{name}.svg").read_bytes()
        )
        assert title and re.search(r"untaught, .*: −?\d+\.\d", text), name
    choices = read(place, "choices/choices")
    right = choices.loc[
        (choices["model"] == MODELS[0]) & (choices["prompt"] == "template"), "right"
    ].sum()
    assert len(page.by_class("picture")) == 3 * 12 and 0 < right <= COMPLETE - 6
    # One image of each three is chosen, in half of them the right one, if there are as many.
    hits = min(right, 6)
    assert len(page.by_class("hit")) == hits and len(page.by_class("miss")) == 12 - hits
    halves = choices.assign(right=choices.index % 2 == 0)
    shown = shown_compounds(halves, read(place, "images"), read(place, "compounds"), "")[
        "compounds"
    ]
    assert [row["right"] for row in shown] == [False] * 6 + [True] * 6


def test_the_page_tells_the_papers_numbers_from_ours(page: Page, analysis: pd.DataFrame) -> None:
    row = analysis.query(
        "model == 'untaught' and prompt == 'reversed' and measure == 'right'"
    ).iloc[0]
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
    long = analysis.assign(
        model=analysis["model"].replace("untaught", "a model with a name that is long indeed")
    )
    with style():
        figures = [draw_kinds(long), draw_accuracy(long), draw_examples(long)]
        nothing = draw_examples(analysis[analysis["prompt"] == "template"])
    assert [overlapping(figure) for figure in figures] == [[], [], []]
    assert nothing.texts[0].get_text().startswith("No model")


def test_without_kinds(of_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = copy_stage(of_run, tmp_path)
    change(place, "compounds", lambda table: table.assign(kind=pd.Series(None, table.index, "str")))
    assert "give it a column kind" in make_page(place).text
    assert (
        "no compound has a kind" in caplog.text
        and "wrong, " not in (place / "analysis.csv").read_text()
    )
    title, text = title_and_description(
        (tmp_path / "figures" / f"{DATASET}_compun_kinds.svg").read_bytes()
    )
    assert title.startswith("Wrong answers") and not text


THREE = ["similarity_compound", "similarity_n1", "similarity_n2"]


def made(rows: list[tuple[str, str, str, float, float, float]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["compound", "model", "prompt", *THREE])
    three = table[THREE].to_numpy()
    table["answer"] = np.array(["compound", "n1", "n2"])[three.argmax(axis=1)]
    table["right"] = three[:, 0] > three[:, 1:].max(axis=1)
    return check_table(table.assign(rank=(three >= three[:, :1]).sum(axis=1)), CHOICES, "choices")


def test_by_hand() -> None:
    similarities = {
        "template": {
            "a": (0.3, 0.2, 0.1),
            "b": (0.2, 0.3, 0.1),
            "c": (0.3, 0.1, 0.3),
            "d": (0.1, 0.0, 0.2),
        },
        "examples_2": {
            "a": (0.4, 0.2, 0.1),
            "b": (0.4, 0.3, 0.1),
            "c": (0.3, 0.1, 0.2),
            "e": (0.1, 0.2, 0.3),
        },
    }
    choices = made(
        [
            (name, "m", prompt, *three)
            for prompt, of in similarities.items()
            for name, three in of.items()
        ]
    )
    compounds = pd.DataFrame(
        {"compound": list("abcde"), "kind": ["either", "either", "none", None, None]}
    )
    people = {"value": 0.9, "low": 0.8, "high": 1.0, "n": 5}
    small = analyze_choices(choices, compounds, people, resamples=200)
    rows = small.set_index(["model", "prompt", "measure"])
    assert rows.index.is_unique and list(small) == ANALYSIS_COLUMNS
    expected = {
        # One of four is right, one ties; a ranks first of all, the tie second.
        ("template", "right"): (1 / 4, 4),
        ("template", "tied"): (1 / 4, 4),
        ("template", "first"): (1 / 4, 4),
        ("examples_2", "right"): (3 / 4, 4),
        ("examples_2", "tied"): (0, 4),
        ("examples_2", "first"): (3 / 4, 4),
        # Of a, b and c, which both were asked of, the template has a, the examples all.
        ("examples_2", "minus template"): (2 / 3, 3),
        ("template", "wrong, either"): (1 / 2, 2),
        ("template", "wrong, none"): (1, 1),
        ("examples_2", "wrong, either"): (0, 2),
        ("examples_2", "wrong, none"): (0, 1),
    }
    values = {key[1:]: (row["value"], row["n"]) for key, row in rows.loc[["m"]].iterrows()}
    assert values.keys() == expected.keys()
    assert all(values[key] == pytest.approx(expected[key]) for key in expected)
    # Two of three differ, in one direction: 2 / 2 ** 2.
    assert rows.loc[("m", "examples_2", "minus template"), "p"] == pytest.approx(0.5)
    assert small[small["model"] == "people"][["measure", "value", "n"]].values.tolist() == [
        ["right", 0.9, 5]
    ]


@pytest.mark.parametrize("n", [1, 120])
def test_where_all_are_right_the_interval_is_exact(n: int) -> None:
    """Clopper and Pearson's."""
    choices = made(
        [(f"c{i}", model, "template", 0.3, 0.2, 0.1) for i in range(n) for model in "ab"]
    )
    compounds = pd.DataFrame({"compound": [f"c{i}" for i in range(n)], "kind": "both"})
    rows = analyze_choices(choices, compounds, resamples=200).set_index(["model", "measure"])
    estimate, low = ["value", "low", "high"], 0.025 ** (1 / n)
    assert rows.loc[("a", "right"), estimate].tolist() == pytest.approx([1, low, 1])
    assert rows.loc[("a", "wrong, both"), estimate].tolist() == pytest.approx([0, 0, 1 - low])
    # Neither has more than the other at any compound: no interval of the difference.
    difference = rows.loc[("b", "minus a")]
    assert (
        difference["value"] == 0
        and pd.isna(difference["low"])
        and difference["n"] == n
        and difference["p"] == 1
    )


def test_differences_are_tested_with_holms_correction(place: Path) -> None:
    """Of prompts, all tests of a model; of models, all tests under all usual prompts."""
    choices = read(place, "choices/choices")
    table = analyze_choices(choices, read(place, "compounds"), resamples=100)
    right = choices.set_index(["model", "prompt", "compound"])["right"].unstack("compound")
    tested = table[table["measure"].str.startswith("minus")].set_index(
        ["model", "prompt", "measure"]
    )
    usual = ["template", "reversed", "descriptions", "examples_5"]
    first, second = MODELS
    families = [
        [((model, p), (model, "template"), "minus template") for p in usual[1:]] for model in MODELS
    ]
    families.append([((second, p), (first, p), f"minus {first}") for p in usual])
    assert len(tested) == sum(map(len, families))
    for family in families:
        exact = []
        for one, other, measure in family:
            a, b = right.loc[one], right.loc[other]
            exact.append(stats.binomtest(int((a & ~b).sum()), max(1, int((a != b).sum()))).pvalue)
            row = tested.loc[(*one, measure)]
            assert row["value"] == pytest.approx(a.mean() - b.mean())
            if (a == b).all():
                assert np.isnan(row["low"]) and np.isnan(row["high"])
            else:
                assert row["low"] < row["value"] < row["high"]
        rows = [tested.loc[(*one, measure), "p"] for one, _, measure in family]
        assert rows == pytest.approx(holm(exact).tolist())
    faulty = choices.assign(compound="x" + choices["compound"])
    for table, fault in (
        (faulty, "23 compounds are not in"),
        (choices.head(0), "choices: there are none"),
    ):
        assert fault in refused(
            lambda table=table: analyze_choices(table, read(place, "compounds"))
        )
