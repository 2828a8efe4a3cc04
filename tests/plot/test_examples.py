"""Examples: chosen evenly, changed words marked, no broken pictures."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.plot.examples import (
    choose_examples,
    choose_rows,
    mark,
    of_all_judges,
    swapped_segments,
)
from tests.project import COMPOSITION, DATASET, GENERATORS
from workflow_scripts.layout import Layout
from workflow_scripts.report.artifacts import read_composition, read_generated


def most_of(counts: Counter[str], there: Counter[str]) -> bool:
    """Return whether no key was taken again before another one was taken."""
    most = max(counts.values(), default=0)
    return all(counts[key] >= min(most - 1, there[key]) for key in there)


KEYS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=30)


@given(KEYS, st.integers(0, 30), st.integers(0, 99), st.booleans())
def test_rows_are_one_of_each_pair_before_a_second_and_then_of_each_class(
    keys: list[tuple[str, str]], n: int, seed: int, by_class: bool
) -> None:
    rows = pd.DataFrame(keys, columns=["pair", "class"]).assign(
        image_id=[f"i{i}" for i in range(len(keys))]
    )
    if by_class:  # each row of another pair
        rows["pair"] = rows["image_id"]
    named = rows.set_index("image_id")
    chosen = choose_rows(
        pd.concat([rows, rows]), named["class"].to_dict(), n, np.random.default_rng(seed)
    )
    assert len(chosen) == len({row.image_id for row in chosen}) == min(n, len(keys))
    names = named["class" if by_class else "pair"]
    assert most_of(Counter(names[row.image_id] for row in chosen), Counter(names))


@given(
    st.text(max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4)
)
def test_mark_keeps_every_character(text: str, spans: list[tuple[int, int]]) -> None:
    inside = [(min(a, b), max(a, b), "seen") for a, b in spans if max(a, b) <= len(text)]
    segments = mark(text, inside)
    assert "".join(words for words, _ in segments) == text
    assert all(words for words, _ in segments)


def test_marks_by_hand() -> None:
    """Nouns are marked at their place after the swap; what most judges say is marked."""
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
        return pd.DataFrame(
            {"hit": hit, "adjective_first": first, "expected_top1": [float(of) for of in hit]}
        )

    tables = (
        judged([True, False], [1.0, np.nan]),
        judged([True, False], [0.0, np.nan]),
        judged([False, True], [1.0, np.nan]),
    )
    together = of_all_judges(tables)
    assert together[["hits", "right", "judges", "hit"]].values.tolist() == [
        [2, 2, 3, True],
        [1, 0, 3, False],
    ]
    assert together["expected_top1"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert pd.isna(together["adjective_first"][1])


def test_every_swap_marks_its_pairs(results: Path) -> None:
    layout = Layout(results, DATASET, COMPOSITION)
    tables = read_composition(layout, "captions", "images", "pairs", "prompts", "swapped")
    swaps, unseen = choose_examples(
        read_generated(layout, GENERATORS, ["0"]), 12, np.random.default_rng(0), tables
    )
    changes = pd.read_parquet(layout.folder / "swapped.parquet").set_index(
        ["image_id", "swapped_text"]
    )["changes"]
    assert len({example.image_id for example in swaps}) == 12 and len(unseen) == 6
    for example in swaps:
        seen, swapped = (
            [text for text, kind in caption.segments if kind] for caption in example.captions
        )
        text = "".join(text for text, _ in example.captions[1].segments)
        for change in changes[example.image_id, text]:
            assert change["new_adj"] in " ".join(swapped) and seen != swapped
    for example in unseen:
        (caption,) = example.captions
        assert [picture.title for picture in caption.pictures] == [
            "faithful",
            "memorizer",
            "photographs",
        ]
        assert {kind for _, kind in caption.segments} == {"", "unseen"}
