"""Examples: chosen evenly, words of pairs marked, judges counted."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.plot.examples import (
    choose_rows,
    mark,
    marked_prompts,
    of_all_judges,
    swapped_segments,
)
from tests.project import COMPOSITION, DATASET
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import read_composition


def most_of(counts: Counter[str], there: Counter[str]) -> bool:
    """Return whether no key was taken again before another one was taken."""
    most = max(counts.values(), default=0)
    return all(counts[key] >= min(most - 1, there[key]) for key in there)


PAIRS = st.lists(st.sampled_from("abcd"), max_size=30)


@given(PAIRS, st.integers(0, 30), st.integers(0, 99))
def test_rows_are_one_of_each_pair_before_a_second(pairs: list[str], n: int, seed: int) -> None:
    rows = pd.DataFrame({"pair": pairs, "image_id": [f"i{i}" for i in range(len(pairs))]})
    chosen = choose_rows(pd.concat([rows, rows]), "pair", n, np.random.default_rng(seed))
    assert len(chosen) == chosen["image_id"].nunique() == min(n, len(pairs))
    assert most_of(Counter(chosen["pair"]), Counter(pairs))


@given(
    st.text(max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4)
)
def test_mark_keeps_every_character(text: str, spans: list[tuple[int, int]]) -> None:
    inside = [(min(a, b), max(a, b), "seen") for a, b in spans if max(a, b) <= len(text)]
    segments = mark(text, inside)
    assert "".join(words for words, _ in segments) == text
    assert all(words for words, _ in segments)


def test_marks_by_hand() -> None:
    """Nouns are marked at their place after the swap."""
    text = "a red wing and a blue bill"
    assert mark(text, [(17, 21, "new"), (2, 5, "old")]) == [
        ("a ", ""),
        ("red", "old"),
        (" wing and a ", ""),
        ("blue", "new"),
        (" bill", ""),
    ]
    assert mark("a red  wing, blue", [(2, 5, "x"), (7, 11, "x"), (13, 17, "x")]) == [
        ("a ", ""),
        ("red  wing", "x"),
        (", ", ""),
        ("blue", "x"),
    ], "with only spaces between them, marks are one"
    assert mark("red wing", [(0, 3, "x"), (4, 8, "y")]) == [("red", "x"), (" ", ""), ("wing", "y")]
    text = "wings that are red, an orange and black head, a red belly"
    swapped = "wings that are orange, a blue and black head, an orange belly"
    changes = [
        {"noun": noun, "start": a, "end": b, "new_start": c, "new_end": d}
        for noun, a, b, c, d in (
            ("wing", 15, 18, 15, 21),
            ("head", 23, 29, 25, 29),
            ("belly", 48, 51, 49, 55),
        )
    ]
    words = ["noun", "adjective_start", "noun_start", "noun_end"]
    nouns = [("wing", 15, 0, 5), ("head", 23, 40, 44), ("head", 34, 40, 44), ("belly", 48, 52, 57)]
    row = SimpleNamespace(
        image_id="a", caption_id=0, text=text, swapped_text=swapped, changes=changes
    )
    segments = swapped_segments(
        row, pd.DataFrame(nouns, columns=words).assign(image_id="a", caption_id=0)
    )
    assert [[text for text, kind in of if kind] for of in segments.values()] == [
        ["wings", "red", "orange", "head", "red belly"],
        ["wings", "orange", "blue", "head", "orange belly"],
    ]


def judged(hit: list[bool], first: list[float]) -> pd.DataFrame:
    """Return one judge's scores, in which a caption that is first is beaten by no distractor."""
    beaten = [float(not is_hit) for is_hit in hit]
    columns = {"hit": hit, "adjective_first": first, "p_beaten": beaten, "p_tied": 0.0}
    return pd.DataFrame(columns)


def test_scores_of_all_judges_count_their_choices() -> None:
    together = of_all_judges(
        [
            judged([True, False], [1.0, np.nan]),
            judged([True, False], [0.5, np.nan]),
            judged([False, True], [1.0, np.nan]),
        ]
    )
    # A tie with another adjective is not a choice.
    assert together[["hits", "right"]].values.tolist() == [[2, 2], [1, 0]]


def test_ranks_are_means_over_judges() -> None:
    tables = [judged([True, False], [1.0, 1.0]), judged([False, False], [1.0, 1.0])]
    assert of_all_judges(tables)["p_beaten"].tolist() == pytest.approx([0.5, 1.0])


def test_every_prompt_marks_its_pair(results: Path) -> None:
    layout = Layout(results, DATASET, COMPOSITION)
    tables = read_composition(layout, "pairs", "prompts", "swapped")
    prompts = tables["prompts"]
    marked = marked_prompts(prompts, tables["swapped"], tables["pairs"])
    for row, segments in zip(prompts.itertuples(), marked, strict=True):
        assert "".join(words for words, _ in segments) == row.text
        kinds = {kind for _, kind in segments if kind}
        assert kinds == ({row.split.removeprefix("test_")} if isinstance(row.pair, str) else set())


def test_every_new_adjective_of_a_swap_is_marked(results: Path) -> None:
    layout = Layout(results, DATASET, COMPOSITION)
    tables = read_composition(layout, "pairs", "prompts", "swapped")
    swaps = tables["swapped"].merge(tables["prompts"][["image_id", "caption_id", "split"]])
    swaps = swaps[swaps["split"] == "test_swapped"]
    prompts = swaps.assign(text=swaps["swapped_text"])
    marked = marked_prompts(prompts, tables["swapped"], tables["pairs"])
    for changes, segments in zip(swaps["changes"], marked, strict=True):
        words = " ".join(text for text, kind in segments if kind == "swapped")
        assert all(change["new_adj"] in words for change in changes)
