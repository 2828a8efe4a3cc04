"""The benchmark of SPECS scores, in small."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import specs as bench
from benchmarks.speed.__main__ import lines
from tests.specs.test_stretch import TINY

pytestmark = pytest.mark.slow


def test_both_ways_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.json").write_text(json.dumps(TINY))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    measured = bench.measure(16, 4, str(tmp_path / "tiny.json"))
    assert (measured["n"], measured["images"], measured["device"]) == (24, 16, "cpu")
    assert measured["max_difference"] < bench.TOLERANCE
    assert measured["all_cached"]["ours"] > measured["texts_cached"]["ours"] > 0
    said = list(lines("specs", measured))
    assert [line.split(":")[0] for line in said] == [
        "specs", *(f"specs, {part}" for part, figures in measured.items() if isinstance(figures, dict))
    ]  # fmt: skip


def test_the_table_has_several_captions_an_image_and_images_a_caption() -> None:
    images, texts = [Path(str(n)) for n in range(8)], [f"text {n}" for n in range(8)]
    pairs = bench.pair(images, texts)
    assert len(pairs) == len(set(pairs)) == 12
    assert [text for path, text in pairs if path == images[1]] == ["text 5", "text 6", "text 7"]
    assert [path for path, text in pairs if text == texts[0]] == images[2:5]
    assert {path for path, _ in pairs} == set(images) and {text for _, text in pairs} == set(texts)


def test_other_scores_are_found() -> None:
    plain = np.linspace(-0.1, 0.1, 20)
    assert bench.check_equal(plain + 1e-6, plain) == pytest.approx(1e-6)
    with pytest.raises(AssertionError, match="differ by up to"):
        bench.check_equal(plain[::-1], plain)
    with pytest.raises(AssertionError, match="differ by up to"):
        bench.check_equal(np.where(plain > 0, np.nan, plain), plain)
    with pytest.raises(AssertionError, match="about one score"):
        bench.check_equal(np.zeros(20), np.zeros(20))
