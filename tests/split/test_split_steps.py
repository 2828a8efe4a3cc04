"""The stage's steps, from tables to tables."""

from pathlib import Path

from benchmarks.digests import digests
from tests.split.stage import inputs, run_all
from workflow_scripts.core.io import read_json


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = (run_all(inputs(tmp_path / name)) for name in ("one", "two"))
    found = dict(digests(one))
    assert found == dict(digests(two))
    names = {"heldout.json", "splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export/split.pkl"}
    assert names <= found.keys()
    counts = read_json(one / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 0
