"""Figures of scores: drawn from any table; the same data gives the same bytes."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from tests.plot.overlapping import overlapping
from workflow_scripts.core.io import read_json
from workflow_scripts.plot.drawing import save, style
from workflow_scripts.plot.labels import SPLIT_MARKS
from workflow_scripts.plot.page import described
from workflow_scripts.report import draw_scores as module
from workflow_scripts.report.draw_pairs import COLORS, draw_pairs
from workflow_scripts.report.draw_scores import (
    draw_comparisons,
    draw_drops,
    draw_gaps,
    draw_health,
    draw_loss,
    draw_scores,
)
from workflow_scripts.report.rows import against_seen, between_generators, beyond_reference, main_rows, of_measure
from workflow_scripts.report.steps import DrawScores

NAMES = ("scores", "gaps", "drops", "comparisons", "pairs", "by_judge", "health", "loss")


class ShiftedLayout(ConstrainedLayoutEngine):
    """A layout that is slightly shifted, as the solver's is from run to run."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.shift = shift

    def execute(self, figure: Figure) -> None:
        super().execute(figure)
        for axes in figure.axes:
            x, y, width, height = axes.get_position(original=True).bounds
            axes._set_position([x + self.shift, y, width, height], which="original")


def draw(results: Path) -> dict[str, bytes]:
    figures = {name: results / "figures" / f"tiny_color_{name}.svg" for name in NAMES}
    place, table, differences = results / "tiny" / "color", results / "table.csv", results / "comparisons.csv"
    module.main(
        DrawScores(
            judges=[place / "judges" / "0"], healths=[place / "health" / "0.json"], table=table,
            differences=differences, by_pair=results / "pairs.csv", dataset="tiny", composition="color", seed=0,
            **figures,
        )
    )  # fmt: skip
    return {name: path.read_bytes() for name, path in figures.items()}


@pytest.fixture(scope="module")
def figures(results: Path) -> dict[str, bytes]:
    return draw(results)


def test_same_data_same_bytes(results: Path, figures: dict[str, bytes]) -> None:
    assert draw(results) == figures


def test_last_digits_of_the_layout_do_not_reach_the_file(results: Path, tmp_path: Path) -> None:
    comparisons = between_generators(pd.read_csv(results / "comparisons.csv"))
    files = []
    for shift in (0, 1e-9):
        with style():
            figure = draw_comparisons(comparisons, 0)
            figure.set_layout_engine(ShiftedLayout(shift))
            save(figure, tmp_path / "figure.svg", "differences")
        files.append((tmp_path / "figure.svg").read_text())
    names = [re.findall(r"url\(#(\w+)\)", file) for file in files]
    assert names[0] == names[1] != []


def test_figures_have_titles_and_no_date_or_path(results: Path, figures: dict[str, bytes]) -> None:
    for content in figures.values():
        assert ET.fromstring(content).tag.endswith("svg")
        assert described(content)[0].endswith("(tiny, color)")
        assert b"<dc:date>" not in content and str(results).encode() not in content


def test_many_generators_are_a_matrix() -> None:
    names = [f"g{number:02}" for number in range(12)]
    # Each is better than those before it, and neighbors cannot be told apart.
    rows = [
        (a, b, split, (i - j) / 100, (i - j - 1) / 100, (i - j + 1) / 100)
        for split in ("test_seen", "test_swapped")
        for (i, a), (j, b) in combinations(enumerate(names), 2)
    ]
    with style():
        figure = draw_comparisons(pd.DataFrame(rows, columns=["a", "b", "split", "difference", "low", "high"]), 0)
    *matrices, legend = figure.axes
    assert [axes.get_title(loc="left") for axes in matrices] == ["seen", "swapped"]
    for axes in matrices:
        assert [label.get_text() for label in axes.get_yticklabels()] == names[::-1]
        drawn = axes.images[0].get_array()
        assert drawn[0, 11] == pytest.approx(11) and drawn[11, 0] == pytest.approx(-11)
        assert not drawn[5, 4] and not drawn[5, 5] and not drawn[5, 6]
    assert legend.get_xlim() == pytest.approx((-11, 11))


def test_pairs_have_a_dot_for_each_generator(results: Path) -> None:
    table = pd.read_csv(results / "pairs.csv")
    with style():
        unseen, _, swapped, _ = draw_pairs(table, 0).axes
    for axes, generators in ((unseen, 3), (swapped, 2)):
        # The greatest fall is on top.
        assert [label.get_text() for label in axes.get_yticklabels()] == ["white bill (12)", "green wing (12)"]
        dots = [line for line in axes.lines if line.get_label() in set(table["generator"])]
        assert sorted(x for line in dots for x in line.get_xdata()) == [-10] * generators + [0] * generators
    many = pd.concat([table.assign(generator=f"g{n}") for n in range(len(COLORS) + 2)])
    assert "2 more generators are in pairs.csv" in " ".join(draw_pairs(many, 0).get_supxlabel().split())


def test_empty_figures_give_a_reason(results: Path, tmp_path: Path) -> None:
    table = pd.read_csv(results / "table.csv")
    comparisons = pd.read_csv(results / "comparisons.csv")
    for figure in (
        draw_scores(table.head(0), None),
        draw_gaps(comparisons.head(0), comparisons.head(0), "exact", 0),
        draw_health([{"images": {"real": {"seen": {"n": 0}, "held_out": {"n": 0}}}}]),
        draw_drops(table, against_seen(comparisons.head(0)), 0),
        draw_drops(table.assign(compound_divergence=None, subgraph_divergence=None), against_seen(comparisons), 0),
        draw_comparisons(comparisons.head(0), 0),
        draw_pairs(pd.read_csv(results / "pairs.csv").head(0), 0),
        draw_loss([pd.DataFrame({"epoch": [0], "step": [0], "retrieval_seen": [0.5]})], 0),
    ):
        save(figure, tmp_path / "figure.svg", "nothing")
        assert len(figure.texts) == 2 and not figure.axes  # the reason and the title


def test_scores_without_an_interval_are_drawn(results: Path, tmp_path: Path) -> None:
    table = pd.read_csv(results / "table.csv").query("composition == 'color'")
    table.loc[0, ["exact", "exact_low", "exact_high", "blind_control"]] = float("nan")
    save(draw_scores(table, None), tmp_path / "scores.svg", "scores")
    assert "nan" not in (tmp_path / "scores.svg").read_text().lower()


def test_a_phone_shows_every_figure_at_its_size(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of 390 px leaves 364 to a figure, which has 96 px an inch."""
    found = {}

    def checked(figure: Figure, path: Path, title: str) -> None:
        found[path.stem] = overlapping(figure), figure.get_figwidth() * 96 <= 364
        save(figure, path, title)

    monkeypatch.setattr(module, "save", checked)
    draw(results)
    assert found == {f"tiny_color_{name}": ([], True) for name in NAMES}


def test_both_scores_are_beside_each_other(results: Path) -> None:
    table = pd.read_csv(results / "table.csv").query("composition == 'color'")
    table.loc[0, ["exact", "exact_low", "exact_high"]] = 0.0  # at the edge
    with style():
        figure = draw_scores(table, "faithful")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["R-precision, %", "adjective accuracy, %"]
    first = main_rows(table).query("judge != 'oracle'").iloc[0]
    for axes, column in zip(figure.axes, ("exact", "adjective"), strict=True):
        own = [line for line in axes.lines if line.get_marker() in SPLIT_MARKS.values()]
        assert own[0].get_xdata() == pytest.approx(100 * first[column]) and not any(line.get_clip_on() for line in own)
        # Of 8 scores, 3 are the reference's; chance is a line, too.
        labels = [line.get_label() for line in axes.lines]
        assert labels.count("reference: faithful") == len(own) - 3 == 5 and labels.count("chance") == 1
    assert {text.get_text() for text in figure.axes[0].texts} == {"photographs", "faithful", "memorizer"}


def test_falls_are_beside_those_beyond_the_reference(results: Path) -> None:
    comparisons = of_measure(pd.read_csv(results / "comparisons.csv"), "exact")
    falls, beyond = against_seen(comparisons), beyond_reference(comparisons)
    with style():
        figure = draw_gaps(falls, beyond, "exact", 0)
    for axes, rows in zip(figure.axes, (falls, beyond), strict=True):
        drawn = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in SPLIT_MARKS.values()]
        assert sorted(drawn) == pytest.approx(sorted(100 * rows["difference"])) and drawn
    assert len(draw_gaps(falls, beyond.head(0), "exact", 0).axes) == 1


def test_each_judge_has_its_health(results: Path) -> None:
    health = read_json(results / "tiny" / "color" / "health" / "0.json")
    other = {**health, "ratio": 0.5}
    figure = draw_health([health, other])
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["real images"] * 2
    drawn = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in SPLIT_MARKS.values()]
    assert drawn == pytest.approx([70, 70, 55, 55])
    assert "2 judges, 95 % intervals; health 0.50 to 0.67." in " ".join(figure.get_supxlabel().split())


def marks(axes) -> dict[str, tuple[float, float]]:
    """Return the position of each split's mark."""
    splits = {mark: split for split, mark in SPLIT_MARKS.items()}
    lines = {splits[line.get_marker()]: line for line in axes.lines if line.get_marker() in splits}
    return {split: (*line.get_xdata(), *line.get_ydata()) for split, line in lines.items()}


def gaps_of(results: Path) -> pd.DataFrame:
    return against_seen(of_measure(pd.read_csv(results / "comparisons.csv"), "exact"))


def test_drops_are_placed_by_divergence(results: Path) -> None:
    table, gaps = pd.read_csv(results / "table.csv"), gaps_of(results)
    with style():
        figure = draw_drops(table, gaps, 0)
    assert len(figure.axes) == 6 and "n = 3 splits" in " ".join(figure.get_supxlabel().split())
    by_generator = {axes.get_title("left"): (axes, other) for axes, other in zip(*[iter(figure.axes)] * 2, strict=True)}
    assert list(by_generator) == ["photographs", "faithful", "memorizer"]
    pairs, subgraphs = map(marks, by_generator["faithful"])
    assert pairs == {"test_seen": (0.1, 0), "test_unseen": (0.4, -10), "test_swapped": (0.7, -10)}
    assert {split: x for split, (x, _) in subgraphs.items()} == dict(zip(pairs, (0.2, 0.5, 0.9), strict=True))
    assert set(marks(by_generator["photographs"][0])) == {"test_seen", "test_unseen"}
    # Intervals are lines; what is fitted would be one too.
    lines = by_generator["faithful"][0].collections[1].get_segments()
    assert lines[0].tolist() == [[0.4, pytest.approx(-14)], [0.4, pytest.approx(-5)]]


def test_a_drop_without_divergence_is_skipped(results: Path) -> None:
    table, gaps = pd.read_csv(results / "table.csv"), gaps_of(results)
    table["subgraph_divergence"] = None
    table.loc[table["split"] == "test_swapped", "compound_divergence"] = None
    figure = draw_drops(table, gaps, 0)
    assert len(figure.axes) == 3 and "n = 2 splits" in " ".join(figure.get_supxlabel().split())
    assert all(set(marks(axes)) == {"test_seen", "test_unseen"} for axes in figure.axes)
