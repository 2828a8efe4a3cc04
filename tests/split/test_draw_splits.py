"""The figures of what the splits hold: what they count, and that the same data gives the same bytes."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_up import make_results
from workflow_scripts.core import tables
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.plot.drawing import save, style
from workflow_scripts.plot.labels import SPLIT_NAMES, swatch
from workflow_scripts.plot.page import described
from workflow_scripts.split import draw_splits
from workflow_scripts.split.draw_splits import (
    MAX_PAIRS,
    MAX_WORDS,
    distribution,
    draw_distribution,
    draw_swapped_pairs,
    draw_words,
    occurrences_by_split,
    word_shares,
)
from workflow_scripts.split.steps import DrawSplits
from workflow_scripts.stats.balance import cut_dominant

WORDS = ("adjectives", "nouns")
NAMES = ("swapped_pairs", *WORDS, *(f"{split}_{words}" for split in SPLIT_NAMES for words in WORDS))


def draw(results: Path) -> dict[str, bytes]:
    files = {name: results / "figures" / f"tiny_color_{name}.svg" for name in NAMES}
    place = results / "tiny" / "color"
    step = DrawSplits(
        pairs=results / "tiny" / "pairs.parquet", ranking=place / "ranking.parquet", splits=place / "splits.parquet",
        swapped=place / "swapped.parquet", prompts=place / "prompts.parquet", dominant=1, ratio=1.25,
        dataset="tiny", composition="color", distributions=list(files.values())[3:],
        **{name: files[name] for name in ("swapped_pairs", *WORDS)},
    )  # fmt: skip
    draw_splits.main(step)
    return {name: file.read_bytes() for name, file in files.items()}


@pytest.fixture(scope="module")
def figures(results: Path) -> dict[str, bytes]:
    return draw(results)


def read_occurrences(results: Path, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    place = results / "tiny"
    return occurrences_by_split(
        read_table(place / "pairs.parquet", tables.PAIRS) if pairs is None else pairs,
        read_table(place / "color" / "ranking.parquet", tables.RANKING),
        read_table(place / "color" / "splits.parquet", tables.SPLIT),
        read_table(place / "color" / "swapped.parquet", tables.SWAPPED),
    )


@pytest.fixture(scope="module")
def occurrences(results: Path) -> pd.DataFrame:
    return read_occurrences(results)


def test_same_data_same_bytes(results: Path, figures: dict[str, bytes]) -> None:
    assert draw(results) == figures


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
    pairs = read_table(results / "tiny" / "pairs.parquet", tables.PAIRS)
    pairs.loc[pairs["noun"] == "bill", "relation"] = "disputed"
    assert len(read_occurrences(results, pairs)) == (occurrences["noun"] != "bill").sum()


@given(st.lists(st.sampled_from([f"w{i}" for i in range(60)]), max_size=300))
def test_a_distribution_loses_no_word(words: list[str]) -> None:
    rows = distribution(pd.Series(words, dtype="str"))
    counts = Counter(words)
    assert rows["n"].sum() == len(words) and len(rows) <= MAX_WORDS + 1
    assert not words or rows["share"].sum() == pytest.approx(1)
    named = rows[rows["word"].isin(counts)]
    assert dict(zip(named["word"], named["n"], strict=True)).items() <= counts.items()
    assert named["n"].is_monotonic_decreasing
    if len(counts) > MAX_WORDS:
        assert rows["word"].iloc[-1] == f"{len(counts) - MAX_WORDS} others"


def test_a_figure_describes_its_numbers(occurrences: pd.DataFrame, figures: dict[str, bytes]) -> None:
    for split, name in SPLIT_NAMES.items():
        title, numbers = described(figures[f"{split}_adjectives"])
        assert title == f"Adjectives in {name} (tiny, color)"
        counts = occurrences.loc[occurrences["split"] == split, "adjective"].value_counts()
        assert f"{counts.index[0]} {100 * counts.iloc[0] / counts.sum():.1f} %" in numbers
        assert len(numbers.split(", ")) == len(counts)


def test_swatches_are_of_colors_alone() -> None:
    assert swatch("gray") and swatch("tan") and swatch("white") == "#ffffff"
    assert not any(map(swatch, ("pointed", "long", "c", "0.5", "C0", "none", "$a$")))
    marks = {}
    for words in (["red", "blue"], ["long", "flat"]):
        occurrences = pd.DataFrame({"adjective": words, "noun": "wing", "split": "train"})
        marks[words[0]] = len(draw_words(occurrences, "adjective", 0).axes[0].lines)
    assert marks == {"red": len(SPLIT_NAMES) + 2, "long": len(SPLIT_NAMES)}


def test_without_swapped_captions(tmp_path: Path) -> None:
    results = make_results(tmp_path / "results")
    place = results / "tiny" / "color"
    swapped = read_table(place / "swapped.parquet", tables.SWAPPED)
    prompts = read_table(place / "prompts.parquet", tables.PROMPTS)
    write_table(swapped.head(0), place / "swapped.parquet", tables.SWAPPED)
    write_table(prompts[prompts["split"] != "test_swapped"], place / "prompts.parquet", tables.PROMPTS)
    assert set(draw(results)) == set(NAMES)


def test_figures_without_data(tmp_path: Path) -> None:
    for figure in (
        draw_distribution(distribution(pd.Series([], dtype="str")), "noun", "test_swapped", 0),
        draw_swapped_pairs([], cut_dominant([]), 0),
    ):
        save(figure, tmp_path / "figure.svg", "nothing")
        assert len(figure.texts) == 2 and not figure.axes  # the reason and the title


def test_words_that_look_like_formulas_are_words(tmp_path: Path) -> None:
    shares = distribution(pd.Series(["$\\no$", "a$b", "50%"], dtype="str"))
    with style():
        save(draw_distribution(shares, "noun", "train", 0), tmp_path / "figure.svg", "words")
    assert (tmp_path / "figure.svg").is_file()


def test_a_long_tail_of_pairs_is_counted_not_drawn() -> None:
    pairs = [f"a{i}_b" for i in range(50) for _ in range(60 - i)]
    figure = draw_swapped_pairs(pairs, cut_dominant(pairs), 0)
    assert len(figure.axes[0].get_yticks()) == MAX_PAIRS
    assert "10 rarer pairs (155 prompts) not shown" in " ".join(figure.get_supxlabel().split())
