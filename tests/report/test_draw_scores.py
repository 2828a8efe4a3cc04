"""Figures of scores: drawn from any table, to bytes that have no date and do not depend on the
layout's last digits.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compclip.core.tables import HELD_OUT
from compclip.plot.drawing import SERIES_COLORS, save, style
from compclip.plot.labels import SPLIT_LOOKS, pair_words
from compclip.plot.page import title_and_description
from compclip.report.draw_scores import draw_composed, draw_loss, draw_pairs, draw_scores
from compclip.report.rows import main_rows, select_measure
from tests.plot.overlapping import overlapping
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.report.scored import scores, tables_of

Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def tables(results: Path) -> Tables:
    named = {
        name: pd.read_csv(results / f"{name}.csv") for name in ("scores", "comparisons", "pairs")
    }
    # The small run's judge reads no pair, so that nothing is measurable there.
    return named | {
        "made": tables_of(scores())[0],
        "log": pd.read_csv(results / DATASET / "judges" / "0" / "log.csv"),
    }


def of_splits(axes: Axes) -> list[Line2D]:
    """The marks of splits in a panel."""
    return [
        line
        for line in axes.lines
        if line.get_marker() in {mark for _, _, mark in SPLIT_LOOKS.values()}
    ]


def values(lines: list[Line2D]) -> list[float]:
    return sorted(x for line in lines for x in line.get_xdata())


# Each figure, and the same without anything to draw.
FIGURES: dict[str, tuple[Callable[[Tables], Figure], Callable[[Tables], Figure]]] = {
    "scores": (
        lambda t: draw_scores(t["scores"], "faithful", 0),
        lambda t: draw_scores(t["scores"].head(0), None, 0),
    ),
    "composed": (
        lambda t: draw_composed(t["made"], 0),
        lambda t: draw_composed(t["made"].head(0), 0),
    ),
    "pairs": (lambda t: draw_pairs(t["pairs"], 0), lambda t: draw_pairs(t["pairs"].head(0), 0)),
    "loss": (
        lambda t: draw_loss([t["log"]], 0),
        lambda t: draw_loss([t["log"].drop(columns="loss")], 0),
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_phone_shows_a_figure_at_its_size_and_an_empty_one_gives_a_reason(
    name: str, tables: Tables, results: Path, tmp_path: Path
) -> None:
    """A page of 390 px leaves 364 to a figure, which has 96 px an inch."""
    full, nothing = FIGURES[name]
    with style():
        figure, empty = full(tables), nothing(tables)
        assert overlapping(figure) == [] and figure.get_figwidth() * 96 <= 364
        assert "seed 0" in " ".join(figure.get_supxlabel().split())
        save(empty, tmp_path / "empty.svg", "nothing")
    assert len(empty.texts) == 2 and not empty.axes, "the reason and the title"
    content = (results / "figures" / f"{DATASET}_{COMPOSITION}_{name}.svg").read_bytes()
    assert title_and_description(content)[0].endswith(f"({DATASET}, {COMPOSITION})")
    assert b"<dc:date>" not in content


def test_last_digits_of_the_layout_do_not_reach_the_file(tables: Tables, tmp_path: Path) -> None:
    """The layout's solver differs in them from run to run."""
    files = []
    for shift in (0, 1e-9):
        with style():
            figure = draw_composed(tables["made"], 0)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for axes in figure.axes:
                x, *rest = axes.get_position(original=True).bounds
                axes.set_position((x + shift, *rest))
            save(figure, tmp_path / "figure.svg", "composed")
        files.append((tmp_path / "figure.svg").read_text())
    names = [re.findall(r"url\(#(\w+)\)", file) for file in files]
    assert names[0] == names[1] != []


def test_both_scores_are_beside_each_other(tables: Tables, tmp_path: Path) -> None:
    scores = tables["scores"].copy()
    scores.loc[0, ["value", "new_pairs_low", "new_pairs_high"]] = 0.0  # at the edge
    with style():
        figure = draw_scores(scores, "faithful", 0)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "R-precision, %",
        "adjective accuracy, %",
    ]
    for axes, measure in zip(figure.axes, ("r_precision", "adjective_accuracy"), strict=True):
        shown = select_measure(main_rows(scores), measure)
        assert values(of_splits(axes)) == pytest.approx(sorted(100 * shown["value"]))
        assert not any(line.get_clip_on() for line in of_splits(axes))
        (reference,) = [line for line in axes.lines if line.get_label() == "reference: faithful"]
        assert len(reference.get_xdata()) == (shown["generator"] != "faithful").sum()
        assert set(reference.get_ydata()) < {
            y for line in of_splits(axes) for y in line.get_ydata()
        }
        assert [line.get_label() for line in axes.lines].count("chance") == 1
    assert {text.get_text() for text in figure.axes[0].texts} == set(GENERATORS)
    scores.loc[0, ["value", "new_pairs_low", "new_pairs_high"]] = float("nan")
    save(draw_scores(scores, None, 0), tmp_path / "scores.svg", "scores")
    assert "nan" not in (tmp_path / "scores.svg").read_text().lower()


def test_points_are_what_generators_compose_and_pairs_have_a_dot_for_each(tables: Tables) -> None:
    scores = main_rows(tables["made"])
    drawn = select_measure(scores, "draws_seen_pairs").set_index("generator")["value"]
    with style():
        figure = draw_composed(tables["made"], 0)
    (axes,) = figure.axes
    rows = (
        select_measure(scores[scores["split"] == HELD_OUT], "composes")
        .set_index("generator")["value"]
        .dropna()
    )
    points = {line.get_label(): (*line.get_xdata(), *line.get_ydata()) for line in axes.lines}
    for generator, value in rows.items():
        assert points[generator] == pytest.approx((100 * drawn[generator], 100 * value))
    assert (
        sum(
            line.get_ydata()[0] in (10, 40, 60, 90)
            for line in axes.lines
            if line.get_label()[0] == "_"
        )
        == 4
    )
    table = tables["pairs"]
    with style():
        figure = draw_pairs(table, 0)
    for panel, split in zip(figure.axes, ("test_unseen", "test_swapped"), strict=True):
        rows = table[(table["split"] == split) & table["adjective_accuracy"].notna()]
        ranked = rows.groupby("pair")["adjective_accuracy"].mean().sort_values(kind="stable").index
        names = [label.get_text().partition(" (")[0] for label in panel.get_yticklabels()]
        assert names == [pair_words(pair) for pair in ranked], "the lowest is on top"
        dots = [line for line in panel.lines if line.get_label() in GENERATORS]
        assert values(dots) == pytest.approx(sorted(100 * rows["adjective_accuracy"]))
    many = pd.concat([table.assign(generator=f"g{n}") for n in range(len(SERIES_COLORS) + 2)])
    assert "2 more generators are in pairs.csv" in " ".join(
        draw_pairs(many, 0).get_supxlabel().split()
    )
