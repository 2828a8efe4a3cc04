"""The figures of divergence: bars of what was measured, the path of a division, the same bytes for the same data."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made_up import make_results
from workflow_scripts.core import tables
from workflow_scripts.core.io import read_json, read_table, write_table
from workflow_scripts.divergence import draw_divergence
from workflow_scripts.divergence.draw_divergence import draw_path, draw_shares
from workflow_scripts.divergence.steps import DrawDivergence
from workflow_scripts.plot.drawing import save, style
from workflow_scripts.plot.page import described

NAMES = ["_".join(words) for words in product(tables.TESTS, tables.DEFINITIONS, ("atoms", "compounds"))]
ROW = {
    "train": 1200, "test": 300, "atoms": 52, "compounds": 100_000, "atom_divergence": 0.0123,
    "compound_divergence": 0.4567, "random_atom_mean": 0.0001, "random_atom_std": 0.0, "random_compound_mean": 0.0321,
    "random_compound_std": 0.0042,
}  # fmt: skip


def draw(results: Path, **more: Any) -> dict[str, bytes]:
    place = results / "tiny" / "color"
    step = DrawDivergence(
        divergence=place / "divergence.parquet", summary=place / "divergence.json", results=results, dataset="tiny",
        composition="color", **more,
    )  # fmt: skip
    draw_divergence.main(step)
    return {
        file.stem.removeprefix("tiny_color_"): file.read_bytes()
        for file in (results / "figures").glob("tiny_color_*.svg")
        if "_pairs_" in file.stem or "_subgraphs_" in file.stem or "division" in file.stem
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return make_results(tmp_path / "results")


def division(results: Path) -> Path:
    return results / "tiny" / "color" / "division.json"


def found(kind: str = "compounds", definition: str = "pairs", **more: Any) -> dict[str, Any]:
    names = {"atoms": ["adjective:red", "noun:wing"], "compounds": ["red_wing", "blue_bill"]}[kind]
    shares = {"names": names, "train": [0.5, 0.1], "test": [0.2, 0.0]}
    return {"definition": definition, "split": "test_unseen", "kind": kind, **shares, **more}


def test_same_data_same_bytes(results: Path) -> None:
    more = {"division": division(results), "definitions": ["pairs"]}
    figures = draw(results, **more)
    assert set(figures) == {*(n for n in NAMES if "_pairs_" in n), "division"}
    assert draw(results, **more) == figures


def test_a_figure_says_its_numbers(results: Path) -> None:
    title, numbers = described(draw(results)["test_unseen_pairs_compounds"])
    assert title == "Compounds of train and unseen: pairs (tiny, color)"
    assert numbers == (
        "red wing 30.0 % of train and 10.0 % of unseen, green wing 20.0 % of train and 20.0 % of unseen,"
        " white bill 10.0 % of train and 30.0 % of unseen"
    )


def test_bars_of_train_and_test_lie_side_by_side() -> None:
    for long in ("", " and more of a long name"):
        figure = draw_shares(found(names=["red_wing", f"blue_bill{long}"]), ROW, 0)
        axes = figure.axes[0]
        train, test = axes.containers
        assert [bar.get_width() for bar in train] == pytest.approx([50, 10])
        assert [bar.get_width() for bar in test] == pytest.approx([20, 0])
        for upper, lower, row in zip(train, test, (0, 1), strict=True):
            assert upper.get_y() + upper.get_height() == pytest.approx(lower.get_y())
            assert row - 0.5 < upper.get_y() and lower.get_y() + lower.get_height() < row + 0.5
        # A share of 0 has its mark.
        marks = {line.get_marker(): line.get_xdata() for line in axes.lines}
        assert marks["^"] == pytest.approx([20, 0]) and marks["o"] == pytest.approx([50, 10])
        names = [t.get_text() for t in (axes.texts if long else axes.get_yticklabels())]
        assert names == ["red wing", f"blue bill{long}"]


def test_words_are_those_of_the_definition() -> None:
    names = [t.get_text() for t in draw_shares(found("atoms"), ROW, 0).axes[0].get_yticklabels()]
    assert names == ["red", "wing"]
    # Of a parse a colon or a low line is the caption's own.
    part = ["wing(amod:red_ish)", "a_b"]
    figure = draw_shares(found("compounds", "subgraphs", names=part), ROW, 0)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == part


def test_a_figure_says_its_divergence_and_n() -> None:
    figure = draw_shares(found("compounds", "subgraphs"), ROW, 3)
    said = " ".join(figure.get_supxlabel().split())
    assert "D_C 0.457 (random 0.032 ± 0.004); the 2 heaviest of 100,000 subgraphs" in said and "seed 3" in said
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["train (n = 1,200)", "unseen (n = 300)"]
    said = " ".join(draw_shares(found("atoms"), ROW | {"atoms": 2}, 3).get_supxlabel().split())
    assert "D_A 0.012 (random < 0.001); all 2 adjectives and nouns" in said


def test_long_names_are_cut_in_the_figure_alone(results: Path) -> None:
    file = results / "tiny" / "color" / "divergence.json"
    content = read_json(file)
    name = "has(" * 50 + "<&$x$>" + ")" * 50
    for shown in content["distributions"]:
        if (shown["definition"], shown["kind"]) == ("subgraphs", "compounds"):
            shown["names"] = [name]
    file.write_text(json.dumps(content))
    figure = draw(results)["test_seen_subgraphs_compounds"]
    assert name in described(figure)[1]
    assert "has(" * 10 + "h…" in figure.decode() and "has(" * 11 not in figure.decode().split("</metadata>")[1]


def test_what_was_not_measured_is_said(results: Path) -> None:
    place = results / "tiny" / "color"
    rows = read_table(place / "divergence.parquet", tables.DIVERGENCE)
    write_table(rows[rows["split"] != "test_swapped"], place / "divergence.parquet", tables.DIVERGENCE)
    figures = draw(results)
    for name in NAMES:
        assert (b"not measured" in figures[name]) == ("swapped" in name)


def test_path_and_targets(results: Path, tmp_path: Path) -> None:
    content = read_json(division(results))
    for target, dashed, reached in ("max", 1, 0.0123), (0.3, 2, 0.001):
        content["wanted"]["compound"] = target
        content["atom_divergence"] = reached
        with style():
            figure = draw_path(content, 0)
            save(figure, tmp_path / "path.svg", "path")
        compound, atom = figure.axes
        assert np.array_equal(compound.lines[0].get_ydata(), content["path"]["compound"])
        assert np.array_equal(atom.lines[0].get_xdata(), content["path"]["images"])
        marked = [axes.lines[1].get_xydata().tolist() for axes in figure.axes]
        assert marked == [[[48, content[f"{kind}_divergence"]]] for kind in ("compound", "atom")]
        assert [t.get_text() for t in figure.legends[0].get_texts()] == ["while it grew", "after exchanges", "wanted"]
        lines = [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]
        assert len(lines) == dashed and lines[-1].get_ydata() == [0.02, 0.02]
        assert atom.get_ylim()[0] < min(0.01, content["atom_divergence"])
        titles = [axes.get_title("left") for axes in figure.axes]
        assert titles == [
            f"D_C (pairs): 0.457, wanted: {'the largest' if target == 'max' else target}",
            f"D_A (adjectives and nouns): {reached:.3f}, wanted: {'at most ' if target == 'max' else ''}0.02",
        ]


def test_a_path_may_touch_zero(results: Path, tmp_path: Path) -> None:
    content = read_json(division(results))
    content["path"]["atom"][5] = content["atom_divergence"] = 0.0
    with style():
        save(draw_path(content, 0), tmp_path / "path.svg", "path")
    assert "nan" not in (tmp_path / "path.svg").read_text().lower()
