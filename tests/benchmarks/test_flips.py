"""No flipped bit in what a run stores is undetected; many more, of a whole run: ``make faults``."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from benchmarks import flips
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.digests import record
from workflow_scripts.core.io import write_json, write_table
from workflow_scripts.core.tables import SPLIT


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a folder with the results and the cache of a run."""
    results, cache = tmp_path / "results", tmp_path / "cache"
    splits = pd.DataFrame({"image_id": [str(n) for n in range(500)], "split": "train"})
    write_table(splits, results / "splits.parquet", SPLIT)
    write_json({"images": 500}, results / "splits.json")
    (results / "images").mkdir()
    for number in range(3):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(results / "images" / f"{number}.png")
    for artifact in ("splits.parquet", "splits.json", "images"):
        record(results / artifact, "step")
    with Cache(cache / "embeddings" / "judge.sqlite") as embeddings:
        embeddings.put((key(number), np.full(256, number, np.float32).tobytes()) for number in range(100))
    return tmp_path


def test_no_flipped_bit_is_undetected(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flips, "OTHER_CACHES", {})
    lines, undetected = flips.flip_all(run / "results", run / "cache", 5, 0)
    assert undetected == []
    assert "5 flipped bits (seed 0) in each of 9 kinds" in lines[0] and lines[0].endswith(" 0 undetected.")
    assert "`results/images/*.png`" in lines[2] and "| checkpoint | 0 | 5 | 0 | 0 |" in lines


def test_what_is_not_checked_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "plain.txt"
    file.write_bytes(b"a" * 100)
    outcomes, undetected = flips.flip(flips.Kind("plain", [file], lambda: (file.read_bytes(), False)), 5, 0)
    assert outcomes == {"undetected": 5} and len(undetected) == 5
    assert undetected[0].startswith("plain: plain.txt, byte ")
    # An error that is not ours, or does not name the file.
    outcomes, _ = flips.flip(flips.Kind("text", [file], lambda: (file.read_text("ascii"), False)), 50, 0)
    assert set(outcomes) == {"undetected"}
    assert file.read_bytes() == b"a" * 100
