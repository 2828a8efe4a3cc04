"""The stage's steps, from tables to tables."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.digests import digests
from compclip.core.errors import UserError
from compclip.core.heldout import pair_names
from compclip.core.tables import DIVISION, PAIRS, SPLIT
from compclip.io import read_json, read_table
from tests.split.stage import inputs, run, run_all


@pytest.mark.parametrize("division", [{}, {"train": 0.4, "test": 0.4, "compound": 0.1}], ids=["pairs", "divergence"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, division: dict[str, Any]) -> None:
    one, two = (run_all(inputs(tmp_path / name), **division) for name in ("one", "two"))
    found = dict(digests(one))
    assert found == dict(digests(two))
    names = {"heldout.json", "splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export/split.pkl"}
    assert names <= found.keys()
    heldout, splits = read_json(one / "heldout.json"), read_table(one / "splits.parquet", SPLIT)
    counts = read_json(one / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 0 and heldout["pairs"]
    assert counts["images_unused"] == 80 - len(splits) and (len(splits) < 80) == bool(division)
    # By the tables alone: what is held out is in test_unseen, and nowhere else.
    pairs = read_table(one / "pairs.parquet", PAIRS)
    where = pairs["image_id"].map(splits.set_index("image_id")["split"])[pair_names(pairs).isin(heldout["pairs"])]
    assert set(where.dropna()) == {"test_unseen"}
    if division:
        assert heldout["source"] == "divergence" and read_json(one / "splits.json")["captions"]["train"] == 3 * 32
        file = one / "division.parquet"
        read_table(file, DIVISION).iloc[1:].to_parquet(file, index=False)
        with pytest.raises(UserError, match="division.parquet has other images than captions.parquet; rerun"):
            run("make_splits", one, division=file)
