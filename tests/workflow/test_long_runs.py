"""Longer runs of the whole chain: a warm cache, a division by divergence, a user's long captions, a
full disk.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.project import SMALL, Project
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
    assert audit["violations"] == [] and audit["counts"]["images_excluded"] == 240 - len(split)
    table = pd.read_parquet(place / "divergence.parquet").set_index(
        ["definition", "split", "texts"]
    )
    unseen = table.loc[("pairs", "test_unseen", "captions")]
    assert unseen["compound_divergence"] > 3 * unseen["random_compound_mean"]
    scores = pd.read_parquet(project.root / "divided" / "scores.parquet")
    assert {"test_seen", "test_unseen", "test_swapped", "held_out"} == set(scores["split"])


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
    assert (
        len(scores.loc[scores["weight"] < 1, "pair"].unique())
        == preset["score"]["balance"]["dominant"]
    )


OWN = """
results: own
cache: .cache_own
dataset: {source: table, table: {file: captions.csv}}
specs:
  data:
    examples: results/sketch/specs/0/examples.parquet
    images: results/sketch/images
    increments: results/sketch/specs/0/steps.parquet
  base:
    model: results/sketch/specs/0/base/model.json
    pretrained: results/sketch/specs/0/base/weights.safetensors
    epochs: 0
  training: {epochs: 1, batch: 20, accumulation: 1, precision: fp32}
"""


def test_the_users_captions(first_run: Project, tmp_path: Path) -> None:
    """With a trained judge, a training table and a test table nothing is drawn or described."""
    project = first_run.fork(tmp_path)
    (project.root / "own.yaml").write_text(OWN)
    (project.root / "captions.csv").write_text("image_id,text\na,a red bird\n")
    project.snakemake("own.yaml", "--", "own/specs.html")
    tables = [pd.read_csv(project.root / name / "specs.csv") for name in ("own", "results")]
    own, before = (table[table["judge"] == "stretched"]["value"].tolist() for table in tables)
    assert own == before


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A small disk at ``tmp_path/disk``, mounted anew with the options that it is called with."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("mounting a small disk needs root")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True
    ).returncode:
        pytest.skip("a small disk cannot be mounted here")

    def remount(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)

    yield remount
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_is_full_of_results(
    first_run: Project, tmp_path: Path, disk: Callable[[str], None]
) -> None:
    project = Project(tmp_path / "project").copy()
    (project.root / "full.yaml").write_text(SMALL.format(results=tmp_path / "disk", cache=".cache"))
    run = partial(
        project.make, "full.yaml", "--", f"{tmp_path}/disk/sketch/captions.parquet", cores=2
    )
    refused = run(check=False)
    assert refused.returncode == 1
    *lines, last = refused.stderr.splitlines()
    assert last == (
        f"error: dataset: {tmp_path}/disk/sketch/images: not written (no space left on device);"
        f" free some disk space and run again (log: {tmp_path}/disk/logs/dataset/load_dataset.log)"
    )
    assert not any("no space" in line for line in lines)
    assert not any((project.root / ".snakemake" / "locks").glob("*"))
    disk("size=20m")
    run()
    made, expected = tmp_path / "disk" / "sketch", first_run.root / "results" / "sketch"
    assert (made / "captions.parquet").read_bytes() == (expected / "captions.parquet").read_bytes()
    assert len(list((made / "images").iterdir())) == len(list((expected / "images").iterdir()))

    # Read-only, a run is refused before it begins.
    disk("ro")
    refused = run(check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"error: {tmp_path}/disk: not writable (read-only file system); fix its permissions or "
        "choose another folder"
    )
