"""The figures of what the splits hold: what they count, and that the same data gives the same bytes."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from tests.project import COMPOSITION, DATASET
from workflow_scripts.core import tables
from workflow_scripts.core.io import read_table
from workflow_scripts.plot.drawing import save, style
from workflow_scripts.plot.labels import SPLIT_NAMES, swatch
from workflow_scripts.plot.page import described
from workflow_scripts.split import draw_splits
from workflow_scripts.split.draw_splits import (
    MAX_PAIRS,
    draw_swapped_pairs,
    draw_words,
    occurrences_by_split,
    word_shares,
)
from workflow_scripts.split.steps import DrawSplits
from workflow_scripts.stats.balance import cut_dominant


def draw(results: Path, folder: Path) -> dict[str, bytes]:
    files = {name: folder / f"{name}.svg" for name in ("swapped_pairs", "adjectives", "nouns")}
    place = results / DATASET / COMPOSITION
    inputs = {name: place / f"{name}.parquet" for name in ("ranking", "splits", "swapped", "prompts")}
    where = {"dataset": DATASET, "composition": COMPOSITION, "dominant": 1, "ratio": 1.25}
    draw_splits.main(DrawSplits(pairs=results / DATASET / "pairs.parquet", **inputs, **where, **files))
    return {name: file.read_bytes() for name, file in files.items()}


def read_occurrences(results: Path, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    place = results / DATASET
    return occurrences_by_split(
        read_table(place / "pairs.parquet", tables.PAIRS) if pairs is None else pairs,
        read_table(place / COMPOSITION / "ranking.parquet", tables.RANKING),
        read_table(place / COMPOSITION / "splits.parquet", tables.SPLIT),
        read_table(place / COMPOSITION / "swapped.parquet", tables.SWAPPED),
    )


@pytest.fixture(scope="module")
def occurrences(results: Path) -> pd.DataFrame:
    return read_occurrences(results)


def test_same_data_same_bytes(results: Path, tmp_path: Path) -> None:
    figures = draw(results, tmp_path / "one")
    assert draw(results, tmp_path / "other") == figures
    assert described(figures["adjectives"])[0] == f"Adjectives in each split ({DATASET}, {COMPOSITION})"


def test_shares_of_a_split_add_up(occurrences: pd.DataFrame) -> None:
    for column in ("adjective", "noun"):
        shares = word_shares(occurrences, column)
        assert shares.sum().round(9).eq(1).all()
        assert shares["train"].is_monotonic_decreasing


def test_swapped_occurrences_are_those_of_the_swapped_text(results: Path, occurrences: pd.DataFrame) -> None:
    swapped = read_table(results / DATASET / COMPOSITION / "swapped.parquet", tables.SWAPPED)
    counted = occurrences[occurrences["split"] == "test_swapped"].value_counts(["adjective", "noun"])
    changed = Counter((change["new_adj"], change["noun"]) for row in swapped["changes"] for change in row)
    assert changed and all(counted[pair] >= n for pair, n in changed.items())


def test_disputed_pairs_are_not_counted(results: Path, occurrences: pd.DataFrame) -> None:
    pairs = read_table(results / DATASET / "pairs.parquet", tables.PAIRS)
    pairs.loc[pairs["noun"] == "bill", "relation"] = "disputed"
    assert len(read_occurrences(results, pairs)) == (occurrences["noun"] != "bill").sum()


def test_swatches_are_of_colors_alone() -> None:
    assert swatch("gray") and swatch("tan") and swatch("white") == "#ffffff"
    assert not any(map(swatch, ("pointed", "long", "c", "0.5", "C0", "none", "$a$")))
    marks = {}
    for words in (["red", "blue"], ["long", "flat"]):
        occurrences = pd.DataFrame({"adjective": words, "noun": "wing", "split": "train"})
        marks[words[0]] = len(draw_words(occurrences, "adjective", 0).axes[0].lines)
    assert marks == {"red": len(SPLIT_NAMES) + 2, "long": len(SPLIT_NAMES)}


def test_a_figure_without_data_says_why(tmp_path: Path) -> None:
    figure = draw_swapped_pairs([], cut_dominant([]), 0)
    save(figure, tmp_path / "figure.svg", "nothing")
    assert len(figure.texts) == 2 and not figure.axes  # the reason and the title


def test_words_that_look_like_formulas_are_words(tmp_path: Path) -> None:
    occurrences = pd.DataFrame({"adjective": ["$\\no$", "a$b", "50%"], "noun": "wing", "split": "train"})
    with style():
        save(draw_words(occurrences, "adjective", 0), tmp_path / "figure.svg", "words")
    assert (tmp_path / "figure.svg").is_file()


def test_a_long_tail_of_pairs_is_counted_not_drawn() -> None:
    pairs = [f"a{i}_b" for i in range(50) for _ in range(60 - i)]
    figure = draw_swapped_pairs(pairs, cut_dominant(pairs), 0)
    assert len(figure.axes[0].get_yticks()) == MAX_PAIRS
    assert "10 rarer pairs (155 prompts) not shown" in " ".join(figure.get_supxlabel().split())
