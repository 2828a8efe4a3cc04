"""The expected widths of intervals, and the warnings of splits that cannot measure anything."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.core.code import ROOT
from compclip.core.heldout import FEW_PAIRS
from compclip.core.tables import PROMPTS, TESTS
from compclip.split.widths import (
    IMAGE_CORRELATION,
    PAIR_SD,
    WIDE,
    WIDTH_REMEDIES,
    effective_pairs,
    estimate_widths,
    half_width,
)


def prompts(images: dict[str, int], each: int = 2, split: str = "test_unseen") -> pd.DataFrame:
    """The prompts of a split: for each pair the number of its images, with ``each`` prompts."""
    rows = [
        (f"{pair}_{i}", number, 0, split, "a red wing", None if split == "test_seen" else pair, f"{pair}_{i}_{number}")
        for pair, n in images.items() for i in range(n) for number in range(each)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(PROMPTS.columns))


@pytest.mark.parametrize(("pairs", "images", "each"), [(40, 20, 3), (12, 4, 6), (6, 200, 1)])
def test_equals_a_simulation(pairs: int, images: int, each: int) -> None:
    """Interval of the pairs' means, simulated with these variances: its root mean square is the expected width."""
    random = np.random.default_rng(0)
    shape = (2000, pairs, images)
    scores = random.normal(0, PAIR_SD, shape[:2])[..., None] + random.normal(0, math.sqrt(IMAGE_CORRELATION) / 2, shape)
    scores += random.normal(0, math.sqrt((1 - IMAGE_CORRELATION) / each) / 2, shape)
    means = scores.mean(axis=2)
    s = means.std(axis=1, ddof=1) / math.sqrt(pairs)
    assert means.mean(axis=1).std() == pytest.approx(math.sqrt((s**2).mean()), rel=0.05)
    simulated = stats.t.ppf(0.975, pairs - 1) * math.sqrt((s**2).mean())
    assert half_width(pairs * images * each, pairs * images, pairs) == pytest.approx(simulated, rel=0.12)


def test_without_pairs_below_ten_pairs_and_where_no_interval_exists() -> None:
    assert half_width(400, 400) == pytest.approx(1.96 * math.sqrt(0.25 / 400), rel=1e-3)
    assert half_width(400, 400, 1) is None and half_width(1, 1) is None and half_width(0, 0) is None
    assert half_width(400, 400, 1.1) == 1.0
    assert effective_pairs(pd.Series([5, 5, 5])) == pytest.approx(3)
    assert effective_pairs(pd.Series([98, 1, 1])) == pytest.approx(1.04, abs=0.01)
    halves = [half_width(10**9, 10**9, pairs) for pairs in (FEW_PAIRS - 1, FEW_PAIRS)]
    assert halves[0] > WIDE > halves[1]


def test_the_documents_have_the_measured_widths_and_the_advised_settings() -> None:
    """Expected widths are half to twice the measured ones, and the constants are the measured ones."""
    text = (ROOT / "docs" / "widths.md").read_text()
    rows = re.findall(r"^\| (?:color|shape), test_\w+ \|(.*)\|$", text, re.MULTILINE)
    table = [[float(cell.replace(",", "")) for cell in row.split("|")] for row in rows]
    assert len(table) == 4
    for n, images, pairs, effective, _, over_pairs, _, _, expected in table:
        assert half_width(int(n), int(images), effective) == pytest.approx(expected, abs=0.003)
        assert 0.5 < expected / (stats.t.ppf(0.975, pairs - 1) * over_pairs) < 2
    assert math.sqrt(np.mean([row[6] ** 2 for row in table])) == pytest.approx(PAIR_SD, abs=0.005)
    assert min(row[7] for row in table) < IMAGE_CORRELATION < max(row[7] for row in table)
    config = (ROOT / "docs" / "config.md").read_text()
    for key in re.findall(r"[a-z]+\.[a-z_.]+[a-z]", " ".join(WIDTH_REMEDIES.values())):
        section, _, name = key.rpartition(".")
        assert f"`{section}`" in config and f"| `{name}` |" in config, key


EVEN = {f"a{i}_n": 10 for i in range(12)}
FIVE = dict(list(EVEN.items())[:5])


@pytest.mark.parametrize(
    ("table", "about", "wide", "remedy"),
    [
        (prompts(FIVE, each=20), {"source": "drawn"}, "± 29.2 points (pairs: 5, prompts: 1,000, images: 50)",
         "set fraction, window and prefer of split.heldout to null, so that they are chosen, or add captions"),
        (prompts({"a_n": 90} | EVEN, split="test_swapped"), {"source": "config"}, "± 30.9 points", "list more"),
        (prompts({"a_n": 9}), {"source": "published"}, "interval unknown (pairs: 1,", "the published"),
        (prompts({}), {"source": "divergence"}, "interval unknown (pairs: 0,", "raise split.div"),
        (prompts({"a_n": 9}), {"source": "drawn", "chosen": {"width": 9, "captions_needed": 7200}}, "interval unknown",
         "± 9 points need roughly 7,200 captions of this kind"),
        (prompts({"a_n": 9}), {"source": "drawn", "chosen": {"width": 9, "captions_needed": None}}, "interval unknown",
         "± 9 points need many more captions of this kind"),
    ],
)  # fmt: skip
def test_one_line_names_wide_intervals_and_what_helps(table: pd.DataFrame, about: dict, wide: str, remedy: str) -> None:
    split = table["split"].iloc[0] if len(table) else "test_unseen"
    others = [prompts(EVEN, split=other) for other in TESTS if other != split]
    (warning,) = estimate_widths(pd.concat([table, *others]), about)["warnings"]
    assert warning.startswith(f"wide intervals: {split} {wide}") and f"); {remedy}" in warning
    assert estimate_widths(pd.concat([prompts(EVEN, split=split), *others]), about)["warnings"] == []
