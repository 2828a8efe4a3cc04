"""Longer runs of the whole chain: divisions by divergence, DVC."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.project import Project
from tests.workflow.test_end_to_end import differing

pytestmark = pytest.mark.slow


def test_a_warm_cache_gives_the_same_bytes(first_run: Project, tmp_path: Path) -> None:
    run = first_run.fork(tmp_path / "run")
    run.snakemake(run.config("warm.yaml", "warm"))
    assert differing(run.artifacts("results"), run.artifacts("warm")) == []


def test_a_division_by_divergence_runs_to_the_report(project: Project) -> None:
    small = (project.root / "small.yaml").read_text()
    for old, new in (
        ("results: results", "results: divided"),
        ("split: {", "split: {method: divergence, divergence: {train: 0.5, test: 0.3}, "),
    ):
        assert old in small
        small = small.replace(old, new)
    (project.root / "divided.yaml").write_text(small)
    project.snakemake("divided.yaml")
    place = project.root / "divided" / "sketch" / "color"
    side = pd.read_parquet(place / "division.parquet").set_index("image_id")["side"]
    split = pd.read_parquet(place / "splits.parquet").set_index("image_id")["split"]
    assert side.value_counts().to_dict() == {"train": 120, "test": 72, "unused": 48}
    audit = json.loads((place / "audit.json").read_text())
    assert audit["violations"] == [] and audit["counts"]["images_unused"] == 240 - len(split)
    table = pd.read_parquet(place / "divergence.parquet").set_index(["definition", "split", "texts"])
    unseen = table.loc[("pairs", "test_unseen", "captions")]
    assert unseen["compound_divergence"] > 3 * unseen["random_compound_mean"]
    scores = pd.read_parquet(project.root / "divided" / "scores.parquet")
    assert {"test_seen", "test_unseen", "test_swapped"} == set(scores["split"])


def test_preset_protocol_balances_and_ties(tmp_path: Path) -> None:
    """What the default run does not exercise, with the trained judge: weights below 1, ties."""
    project = Project(tmp_path / "protocol").copy()
    preset = yaml.safe_load((project.root / "presets" / "protocol.yaml").read_text())
    preset["generate"]["generators"], preset["judge"]["epochs"] = ["faithful"], 1
    (project.root / "config.yaml").write_text(yaml.safe_dump(preset))
    project.snakemake("config.yaml", "--", f"{preset['results']}/table.csv")
    for split in ("test_unseen", "test_swapped"):
        files = (project.root / preset["results"]).rglob(f"faithful/{split}.parquet")
        (file,) = (file for file in files if "oracle" not in str(file.parent))
        scores = pd.read_parquet(file)
        assert (scores["weight"] < 1).any() == (split == "test_swapped")
        assert (scores["p_tied"] > 0).any() or split == "test_swapped"
    assert len(scores.loc[scores["weight"] < 1, "pair"].unique()) == preset["score"]["balance"]["dominant"]
