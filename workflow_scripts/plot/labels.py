"""The words, marks and choices that figures and page share."""

from __future__ import annotations

import math

import pandas as pd

# What a reader is told of each split, in its order.
SPLIT_NAMES = {"train": "train", "test_seen": "seen", "test_unseen": "unseen", "test_swapped": "swapped"}

# Okabe and Ito's colours, told apart with any colour vision; each has a mark of its own besides. None is so light
# or dark that it fades where the page turns a figure over for dark mode.
SPLIT_COLORS = {"train": "#555555", "test_seen": "#009E73", "test_unseen": "#0072B2", "test_swapped": "#D55E00"}
SPLIT_MARKS = {"train": "o", "test_seen": "s", "test_unseen": "^", "test_swapped": "D"}

# The columns that hold a pair's words, and what several of them are called.
WORD_KINDS = {"adjective": "adjectives", "noun": "nouns"}

# What each definition of divergence takes for atoms and compounds.
PART_NAMES = {
    ("pairs", "atoms"): "adjectives and nouns",
    ("pairs", "compounds"): "pairs",
    ("subgraphs", "atoms"): "words",
    ("subgraphs", "compounds"): "subgraphs",
}


def swatch(word: str) -> str | None:
    """The color, #rrggbb, that ``word`` names; None where it names none.

    As xkcd's survey asked people (matplotlib's ``XKCD_COLORS``), and for what it does not hold, as in CSS.
    """
    from matplotlib.colors import CSS4_COLORS, XKCD_COLORS  # slow to import, and few need it

    color = XKCD_COLORS.get(f"xkcd:{word}") or CSS4_COLORS.get(word)
    return None if color is None else str(color)


def percent(value: float | None, digits: int = 1) -> str:
    """0.1234 as ``12.3``; a dash where there is no value."""
    return "–" if value is None or math.isnan(value) else number(100 * value, digits)


def number(value: float, digits: int) -> str:
    """-0.1234 as ``−0.123``; never ``−0.000``."""
    # Adding 0 turns -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """``[11.0, 13.9]`` in per cent, nothing where there is no interval."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{percent(low, digits)}, {percent(high, digits)}]"


def pair_words(pair: str) -> str:
    """``red_wing`` as people say it."""
    return pair.replace("_", " ")


def main_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of table.csv that stand for a split: all its prompts, original captions as distractors."""
    part = (table["split"] == "test_seen") & (table["prompts"] == "swapped")
    return table[~part & (table["distractors"] == "original")]


def against_seen(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The rows of comparisons.csv that set a generator's split against its own seen, with a column ``generator``.

    Generators keep their order; unseen stands before swapped.
    """
    own = comparisons[comparisons["a"].str.contains(" ") & comparisons["difference"].notna()]
    own = own.assign(generator=own["a"].str.split(" ").str[0])
    first = {name: i for i, name in enumerate(own["generator"].drop_duplicates())}
    order = list(SPLIT_NAMES)
    place = [(first[g], order.index(s)) for g, s in zip(own["generator"], own["split"], strict=True)]
    return own.iloc[sorted(range(len(own)), key=place.__getitem__)]


def between_generators(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The rows of comparisons.csv that set one generator against another."""
    return comparisons[~comparisons["a"].str.contains(" ") & comparisons["difference"].notna()]
