"""The figures: what they count, and that the same data gives the same bytes."""

from __future__ import annotations

import argparse
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from workflow_scripts.common import tables
from workflow_scripts.common.io import read_table
from workflow_scripts.report import draw_figures
from workflow_scripts.report.draw_figures import (
    draw_comparisons,
    draw_gaps,
    draw_loss,
    draw_scores,
    draw_swapped_pairs,
    occurrences_by_split,
    save,
    word_shares,
)
from workflow_scripts.report.labels import between_generators
from workflow_scripts.score.balance import cut_dominant


class ShiftedLayout(ConstrainedLayoutEngine):
    """A layout that is a little off, as the solver is from run to run."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.shift = shift

    def execute(self, figure: Figure) -> None:
        super().execute(figure)
        for axes in figure.axes:
            x, y, width, height = axes.get_position(original=True).bounds
            axes._set_position([x + self.shift, y, width, height], which="original")


NAMES = ("scores", "gaps", "comparisons", "loss", "swapped_pairs", "adjectives", "nouns")


def draw(results: Path) -> dict[str, bytes]:
    draw_figures.main(
        argparse.Namespace(results=results, dataset="tiny", composition="color", dominant=1, ratio=1.25, seed=0)
    )
    return {name: (results / "figures" / f"tiny_color_{name}.svg").read_bytes() for name in NAMES}


@pytest.fixture(scope="module")
def figures(results: Path) -> dict[str, bytes]:
    return draw(results)


@pytest.fixture(scope="module")
def occurrences(results: Path) -> pd.DataFrame:
    place = results / "tiny"
    return occurrences_by_split(
        read_table(place / "pairs.parquet", tables.PAIRS),
        read_table(place / "color" / "ranking.parquet", tables.RANKING),
        read_table(place / "color" / "splits.parquet", tables.SPLIT),
        read_table(place / "color" / "swapped.parquet", tables.SWAPPED),
    )


def test_same_data_same_bytes(results: Path, figures: dict[str, bytes]) -> None:
    assert draw(results) == figures


def test_last_digits_of_the_layout_do_not_reach_the_file(results: Path, tmp_path: Path) -> None:
    comparisons = between_generators(pd.read_csv(results / "comparisons.csv"))
    files = []
    for shift in (0, 1e-9):
        with matplotlib.rc_context(draw_figures.STYLE):
            figure = draw_comparisons(comparisons, 0)
            figure.set_layout_engine(ShiftedLayout(shift))
            save(figure, tmp_path / "figure.svg")
        files.append((tmp_path / "figure.svg").read_text())
    names = [re.findall(r"url\(#(\w+)\)", file) for file in files]
    assert names[0] == names[1] != []


def test_figures_are_svg_without_date_or_place(results: Path, figures: dict[str, bytes]) -> None:
    for content in figures.values():
        assert ET.fromstring(content).tag.endswith("svg")
        assert b"<dc:date>" not in content and str(results).encode() not in content


def test_shares_of_a_split_add_up(occurrences: pd.DataFrame) -> None:
    for column in ("adjective", "noun"):
        shares = word_shares(occurrences, column)
        assert shares.sum().round(9).eq(1).all()
        assert shares["train"].is_monotonic_decreasing


def test_swapped_occurrences_are_those_of_the_swapped_text(results: Path, occurrences: pd.DataFrame) -> None:
    swapped = read_table(results / "tiny" / "color" / "swapped.parquet", tables.SWAPPED)
    words = swapped["swapped_text"].str.split().explode().value_counts()
    counted = occurrences.loc[occurrences["split"] == "test_swapped", "adjective"].value_counts()
    assert counted.to_dict() == {word: words[word] for word in counted.index}
    assert counted["green"] >= (swapped["pair"] == "green_wing").sum() > 0


def test_disputed_pairs_are_not_counted(results: Path, occurrences: pd.DataFrame) -> None:
    place = results / "tiny"
    pairs = read_table(place / "pairs.parquet", tables.PAIRS)
    pairs.loc[pairs["noun"] == "bill", "relation"] = "disputed"
    left = occurrences_by_split(
        pairs,
        read_table(place / "color" / "ranking.parquet", tables.RANKING),
        read_table(place / "color" / "splits.parquet", tables.SPLIT),
        read_table(place / "color" / "swapped.parquet", tables.SWAPPED),
    )
    assert len(left) == (occurrences["noun"] != "bill").sum()


def test_nothing_to_draw_is_said(results: Path, tmp_path: Path) -> None:
    table = pd.read_csv(results / "table.csv")
    comparisons = pd.read_csv(results / "comparisons.csv")
    for name, figure in {
        "scores": draw_scores(table.head(0)),
        "gaps": draw_gaps(comparisons.head(0), 0),
        "comparisons": draw_comparisons(comparisons.head(0), 0),
        "loss": draw_loss(pd.DataFrame({"epoch": [0], "step": [0], "retrieval_seen": [0.5]}), 0),
        "swapped": draw_swapped_pairs([], cut_dominant([]), 0),
    }.items():
        save(figure, tmp_path / f"{name}.svg")
        assert len(figure.texts) == 1 and not figure.axes


def test_scores_without_an_interval_are_drawn(results: Path, tmp_path: Path) -> None:
    table = pd.read_csv(results / "table.csv").query("composition == 'color'")
    table.loc[0, ["exact", "exact_low", "exact_high", "blind_control"]] = float("nan")
    figure = draw_scores(table)
    save(figure, tmp_path / "scores.svg")
    assert "nan" not in (tmp_path / "scores.svg").read_text().lower()


def test_a_long_tail_of_pairs_is_counted_not_drawn(tmp_path: Path) -> None:
    pairs = [f"a{i}_b" for i in range(50) for _ in range(60 - i)]
    figure = draw_swapped_pairs(pairs, cut_dominant(pairs), 0)
    assert len(figure.axes[0].get_yticks()) == draw_figures.MOST_PAIRS
    assert "10 rarer pairs (155 prompts) not shown" in figure.get_supxlabel()
