"""Trials worked by hand."""

import pandas as pd
import pytest

from compclip.human.entries import make_trials


def occurrence(image: str, caption: int, text: str, adjective: str, noun: str, relation: str = "adjacent") -> tuple:
    start, at = text.index(adjective), text.index(noun)
    return image, caption, adjective, noun, start, start + len(adjective), at, at + len(noun), relation


COLUMNS = [
    "image_id", "caption_id", "adjective", "noun", "adjective_start", "adjective_end", "noun_start", "noun_end",
    "relation",
]  # fmt: skip
TEXTS = {
    ("a", 0): "a red wing and a blue bill",
    ("a", 1): "the wing is orange or so",
    ("b", 0): "red wing and bill",
    ("b", 1): "a bird with a green tail",
    ("c", 0): "an orange wing",
}


@pytest.fixture
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    captions = pd.DataFrame([(*k, t) for k, t in TEXTS.items()], columns=["image_id", "caption_id", "text"])
    pairs = [
        occurrence("a", 0, TEXTS["a", 0], "red", "wing"),
        occurrence("a", 0, TEXTS["a", 0], "blue", "bill"),
        occurrence("a", 1, TEXTS["a", 1], "orange", "wing", "predicative"),
        occurrence("b", 0, TEXTS["b", 0], "red", "wing"),
        occurrence("b", 0, TEXTS["b", 0], "red", "bill", "shared"),
        occurrence("b", 1, TEXTS["b", 1], "green", "tail"),
        occurrence("c", 0, TEXTS["c", 0], "orange", "wing"),
    ]
    return captions, pd.DataFrame(pairs, columns=COLUMNS)


def test_trials_by_hand(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    trials, left_out = make_trials(*tables, {"red_wing", "orange_wing"}, ["blue", "orange", "red"], seed=0)
    rows = [tuple(row) for row in trials[["image_id", "caption_id", "adjective", "wrong", "wrong_text"]].values]
    # Of image a, red and orange are said of the wing: blue is all that is left. Of b, red bears on the bill as well.
    assert rows[:2] == [
        ("a", 0, "red", "blue", "a blue wing and a blue bill"),
        ("a", 1, "orange", "blue", "the wing is blue or so"),
    ]
    assert rows[2][:3] == ("c", 0, "orange") and rows[2][4] == f"a {rows[2][3]} wing"
    assert left_out == {"shared or disputed": 1}
    trials, left_out = make_trials(*tables, {"orange_wing"}, ["orange", "red"], seed=0)
    assert len(trials) == 1 and left_out == {"no wrong adjective is left": 1}


def test_wrong_adjectives_depend_on_the_seed_alone(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    captions, pairs = tables
    adjectives = [f"color{i}" for i in range(30)]
    one, _ = make_trials(captions, pairs, {"red_wing", "orange_wing"}, adjectives, 1)
    same, _ = make_trials(captions.iloc[::-1], pairs.iloc[::-1], {"orange_wing", "red_wing"}, adjectives, 1)
    other, _ = make_trials(captions, pairs, {"red_wing", "orange_wing"}, adjectives, 2)
    assert one.equals(same) and not one.equals(other)
