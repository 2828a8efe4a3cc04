"""The benchmark of SPECS scores, in small."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import specs as bench
from benchmarks.speed.__main__ import figure_lines
from tests.specs.test_stretch import TINY

pytestmark = pytest.mark.slow


def test_both_ways_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.json").write_text(json.dumps(TINY))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    measured = bench.measure(16, 4, str(tmp_path / "tiny.json"))
    assert (measured["n"], measured["images"], measured["device"]) == (24, 16, "cpu")
    assert measured["max_difference"] < bench.COSINE_TOLERANCE
    assert measured["all_cached"]["ours"] > measured["texts_cached"]["ours"] > 0
    said = list(figure_lines("specs", measured))
    assert [line.split(":")[0] for line in said] == [
        "specs", *(f"specs, {part}" for part, figures in measured.items() if isinstance(figures, dict))
    ]  # fmt: skip


def test_other_scores_are_found() -> None:
    plain = np.linspace(-0.1, 0.1, 20)
    assert bench.check_cosines(plain + 1e-6, plain) == pytest.approx(1e-6)
    for other, one, fault in (
        (plain[::-1], plain, "differ by up to"),
        (np.where(plain > 0, np.nan, plain), plain, "differ by up to"),
        (np.zeros(20), np.zeros(20), "about one score"),
    ):
        with pytest.raises(AssertionError, match=fault):
            bench.check_cosines(other, one)
