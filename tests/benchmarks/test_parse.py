"""The benchmark of the parse, in small: the step finds the pairs of a plain use of spaCy."""

import pandas as pd
import pytest

from benchmarks.speed import parse as bench

pytestmark = pytest.mark.slow


def test_both_ways_find_the_same_pairs() -> None:
    texts = [f"this bird has a {color} {noun}." for color in ("red", "dark brown") for noun in ("bill", "eye ring")]
    texts += ["its wings are long and pointed", "the bill"]
    captions = pd.DataFrame({"image_id": [f"i{n // 2}" for n in range(6)], "caption_id": [0, 1] * 3, "text": texts})
    measured = bench.measure(captions=pd.concat([captions, captions]).assign(class_id=""))
    assert (measured["n"], measured["unit"]) == (6, "captions/s")
    assert min(measured["ratio"], measured["bound"], measured["cpu_s"], measured["baseline_cpu_s"]) > 0
