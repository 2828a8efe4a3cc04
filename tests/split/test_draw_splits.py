"""The figures of what the splits hold: what they count."""

from pathlib import Path

import pandas as pd

from compclip.core import tables
from compclip.divergence.pair_samples import swapped_occurrences
from compclip.io import read_table
from compclip.plot.drawing import save, style
from compclip.plot.labels import SPLIT_NAMES, swatch
from compclip.split.draw_splits import MAX_PAIRS, draw_swapped_pairs, draw_words, occurrences_by_split, word_shares
from compclip.stats.balance import cut_dominant
from tests.project import COMPOSITION, DATASET


def test_occurrences_of_words(results: Path) -> None:
    place, pairs = results / DATASET / COMPOSITION, read_table(results / DATASET / "pairs.parquet", tables.PAIRS)
    schemas = {"ranking": tables.RANKING, "splits": tables.SPLIT, "swapped": tables.SWAPPED}
    ranking, splits, swapped = (read_table(place / f"{name}.parquet", schema) for name, schema in schemas.items())
    occurrences = occurrences_by_split(pairs, ranking, splits, swapped)
    for column in ("adjective", "noun"):
        shares = word_shares(occurrences, column)
        assert shares.sum().round(9).eq(1).all() and shares["train"].is_monotonic_decreasing
    changed, _ = swapped_occurrences(pairs[pairs["relation"] != "disputed"], swapped)
    assert len(changed) >= (occurrences["split"] == "test_swapped").sum() > 0
    pairs.loc[pairs["noun"] == "bill", "relation"] = "disputed"
    assert len(occurrences_by_split(pairs, ranking, splits, swapped)) == (occurrences["noun"] != "bill").sum()


def test_swatches_are_of_colors_alone(tmp_path: Path) -> None:
    assert swatch("gray") and swatch("tan") and swatch("white") == "#ffffff"
    assert not any(map(swatch, ("pointed", "long", "c", "0.5", "C0", "none", "$a$")))
    marks = {}
    for words in (["red", "blue"], ["long", "flat"], ["$\\no$", "a$b", "50%"]):
        occurrences = pd.DataFrame({"adjective": words, "noun": "wing", "split": "train"})
        with style():
            figure = draw_words(occurrences, "adjective", 0)
            marks[words[0]] = len(figure.axes[0].lines)
            save(figure, tmp_path / "figure.svg", "what looks like a formula is a word")
    assert list(marks.values()) == [len(SPLIT_NAMES) + 2, len(SPLIT_NAMES), len(SPLIT_NAMES)]


def test_a_long_tail_of_pairs_is_counted_not_drawn() -> None:
    pairs = [f"a{i}_b" for i in range(50) for _ in range(60 - i)]
    figure = draw_swapped_pairs(cut_dominant(pairs), 0)
    assert len(figure.axes[0].get_yticks()) == MAX_PAIRS
    assert "10 rarer pairs (155 prompts) not shown" in " ".join(figure.get_supxlabel().split())
    empty = draw_swapped_pairs(cut_dominant([]), 0)
    assert empty.texts[0].get_text() == "No caption was swapped." and not empty.axes
