"""Names, colors, marks and number formats of figures and pages."""

import math

from compclip.core.tables import HELD_OUT

# The label, color and mark of each split. Okabe and Ito's colors are distinguishable with any color
# vision; these stay visible when a page inverts the figure for dark mode.
SPLIT_LOOKS = {
    "train": ("train", "#555555", "o"),
    "test_seen": ("seen", "#009E73", "s"),
    "test_unseen": ("unseen", "#0072B2", "^"),
    "test_swapped": ("swapped", "#D55E00", "D"),
}
# Names of the splits for readers, in order.
SPLIT_NAMES = {split: name for split, (name, _, _) in SPLIT_LOOKS.items()} | {HELD_OUT: "held out"}
# Differences are bold if their p-value, corrected over their family, is below this.
ALPHA = 0.05

# The atoms and compounds of each definition of divergence.
PART_NAMES = {
    ("pairs", "atoms"): "adjectives and nouns",
    ("pairs", "compounds"): "pairs",
    ("subgraphs", "atoms"): "words",
    ("subgraphs", "compounds"): "subgraphs",
}


def percent(value: float | None, digits: int = 1) -> str:
    """Return 0.1234 as ``12.3``; a dash without a value."""
    return "–" if value is None or math.isnan(value) else number(100 * value, digits)


def number(value: float, digits: int) -> str:
    """Return -0.1234 as ``−0.123``, but 0 without a sign."""
    # Adding 0 turns -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def p_value(value: float | None) -> str:
    """Return a p-value as text; a dash without a value."""
    if value is None or math.isnan(value):
        return "–"
    return "<\u202f0.0001" if value < 1e-4 else f"{value:.4f}"


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Return ``[11.0, 13.9]`` in percent; an empty text without an interval."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{percent(low, digits)}, {percent(high, digits)}]"


def pair_words(pair: str) -> str:
    return pair.replace("_", " ")
