"""The stage's steps, from tables to tables."""

from pathlib import Path

import pytest

from benchmarks.digests import digests
from tests.split.stage import inputs, run_all
from workflow_scripts.core import io
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.tables import VARIANTS


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = (run_all(inputs(tmp_path / name)) for name in ("one", "two"))
    found = dict(digests(one))
    assert found == dict(digests(two))
    names = {"heldout.json", "splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export/split.pkl"}
    assert names <= found.keys()
    counts = read_json(one / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 0


def test_blocks_of_images_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "ROWS_PER_GROUP", 64)
    whole = run_all(inputs(tmp_path / "whole"))
    monkeypatch.setattr(io, "IMAGES_PER_BLOCK", 2)
    blocks = run_all(inputs(tmp_path / "blocks"))
    assert dict(digests(whole)) == dict(digests(blocks))
    assert len(read_table(blocks / "variants.parquet", VARIANTS)) > 100
