"""Two splits of the same captions beside each other."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.split.stage import inputs, run_all
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import read_json, read_table, write_json, write_table
from workflow_scripts.core.pickles import plain_pickle
from workflow_scripts.core.tables import PAIRS, RANKING, SPLIT
from workflow_scripts.divergence.chernoff import divergence
from workflow_scripts.divergence.compare_splits import CompareSplits, main


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_all(inputs(tmp_path_factory.mktemp("drawn")))


def compare(capsys: pytest.CaptureFixture[str], drawn: Path, other: Path, **more) -> dict:
    tables = {name: drawn / f"{name}.parquet" for name in ("pairs", "ranking")}
    main(CompareSplits(first=drawn, second=other, **tables, json=True, **more))
    return json.loads(capsys.readouterr().out)


def test_a_split_and_its_published_form_are_equal(drawn: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lexicons = {"adjectives": drawn / "color.yaml", "nouns": drawn / "nouns.yaml"}
    values = compare(capsys, drawn, drawn / "export" / "split.pkl", **lexicons)
    assert [round(values[f"{kind}_divergence"], 12) for kind in ("atom", "compound")] == [0, 0]
    sizes = read_table(drawn / "splits.parquet", SPLIT)["split"].value_counts().to_dict()
    assert {name: row[name] for name, row in values["images"].items() if row[name]} == sizes
    assert values["heldout"]["common"] == read_json(drawn / "heldout.json")["pairs"]
    with pytest.raises(UserError, match=r"split\.pkl: a published split; give --adjectives"):
        compare(capsys, drawn, drawn / "export" / "split.pkl")


def test_distances_and_overlaps_of_two_splits(drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second train is the first without its first half, and one image is in no split."""
    splits = read_table(drawn / "splits.parquet", SPLIT)
    train = splits.index[splits["split"] == "train"]
    moved = splits.copy()
    moved.loc[train[: len(train) // 2], "split"] = "test_seen"
    write_table(moved.drop(train[:1]), tmp_path / "splits.parquet", SPLIT)
    held = read_json(drawn / "heldout.json")["pairs"]
    write_json({"pairs": [*held[1:], "odd_pair"]}, tmp_path / "heldout.json")
    values = compare(capsys, drawn, tmp_path)
    half = len(train) // 2
    assert values["images"]["train"] == {
        "train": len(train) - half, "test_seen": half - 1, "test_unseen": 0, "none": 1,
    }  # fmt: skip
    assert values["heldout"] == {"first": len(held), "second": len(held), "common": held[1:]}
    pairs = read_table(drawn / "pairs.parquet", PAIRS)
    pairs = pairs.assign(pair=pair_names(pairs))
    ranked = sorted(pair_names(read_table(drawn / "ranking.parquet", RANKING)))
    counts = [
        pairs[pairs["image_id"].isin(table.loc[rows, "image_id"])]["pair"].value_counts().reindex(ranked, fill_value=0)
        for table, rows in ((splits, train), (moved, train[half:]))
    ]
    assert np.isclose(values["compound_divergence"], divergence(*counts, 0.1))
    assert np.isclose(values["compound_divergence_reversed"], divergence(*counts[::-1], 0.1))
    assert 0 < values["random_compound_mean"] < 1


def test_splits_of_other_captions_are_refused(drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = {"train": ["x"], "test_seen": ["y"], "test_unseen": ["z"], "heldout_pairs": ["red_wing"]}
    (tmp_path / "split.pkl").write_bytes(plain_pickle(foreign))
    with pytest.raises(UserError, match=r"split\.pkl: none of its train images is in .*pairs\.parquet; give the pairs"):
        compare(capsys, drawn, tmp_path / "split.pkl", adjectives=drawn / "color.yaml")
