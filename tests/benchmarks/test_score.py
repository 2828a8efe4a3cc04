"""The benchmark on a few images: both ways find the same hits."""

from __future__ import annotations

import pytest

from benchmarks.speed.score import measure

pytestmark = pytest.mark.slow


def test_both_ways_find_the_same_hits() -> None:
    found = measure(n=80, anew=6)
    assert found["n"] == 80 and found["unit"] == "entries/s"
    assert found["hits_differ"] == found["near_ties"]
    assert found["ratio"] > 1 and found["bound"] > 1
