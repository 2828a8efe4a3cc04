"""The benchmark of the judge's training, in small."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.speed import judge_cached
from tests.accelerator import accelerator

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("device", ["cpu", "simulated"])
def test_both_ways_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    cfg = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64},
        "text_cfg": {"context_length": 77, "width": 16, "heads": 2, "layers": 12},
    }
    (tmp_path / "small.json").write_text(json.dumps(cfg))
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "birds50.yaml").write_text("dataset: {cub: {root: absent}}")
    monkeypatch.setattr(judge_cached, "ROOT", tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with nullcontext() if device == "cpu" else accelerator():
        measured = judge_cached.measure(judge_cached.Size(6, 3, 2, 2), str(tmp_path / "small.json"))
    assert measured["n"] == 18 and measured["device"] == device
    assert measured["ratio"] > 0 and measured["baseline_decoding"] > 0
    # On a GPU the time itself is asked for.
    assert measured["bound"] > 0 if device == "cpu" else "bound" not in measured
