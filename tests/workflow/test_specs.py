"""Stage specs through Snakemake: from drawn birds to the page, byte for byte again, and what reruns for what."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.workflow.conftest import Project
from workflow_scripts.specs.config import Training

SPECS = """
results: {results}
cache: {cache}
dataset: {{source: sketch, sketch: {{images: 200, species: 10}}}}
specs:
  seeds: [3]
  test: 40
  bootstrap: 200
  base: {{model: sketch_text, epochs: 1, batch: 40, train_on: train}}
  training: {{epochs: 2, batch: 20, accumulation: 2, lr: 0.001, warmup: 0.1, precision: fp32}}
"""
PAGES = ("specs.csv", "specs.html")


def run(project: Project, results: str, cores: int = 2) -> Path:
    (project.root / f"{results}.yaml").write_text(SPECS.format(results=results, cache=f".cache_{results}"))
    project.snakemake(f"{results}.yaml", "--", *(f"{results}/{name}" for name in PAGES), cores=cores)
    return project.root / results


@pytest.fixture(scope="module")
def long(project: Project) -> Path:
    return run(project, "long")


def planned(project: Project, config: str) -> set[str]:
    printed = project.snakemake(config, "--dry-run", "--quiet", "rules", "--", "long/specs.html").stdout
    if "Nothing to be done" in printed:
        return set()
    return {line.split()[0] for line in printed.splitlines() if len(line.split()) == 2}


def test_it_runs_to_the_page(long: Path) -> None:
    table = pd.read_csv(long / "specs.csv", keep_default_na=False)
    assert len(table) == 5 * 3 and set(table["seed"]) == {3} and (table["n"] == 40).all()
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    own = table[table["against"] == ""].set_index(["judge", "measure"])["value"]
    for row in table[table["against"] != ""].itertuples():
        gap = own[row.judge, row.measure] - own[row.against, row.measure]
        assert row.value == pytest.approx(gap, abs=2e-6)
    place = long / "sketch" / "specs" / "3"
    trained = {name: json.loads((place / name / "manifest.json").read_text()) for name in ("specs", "contrastive")}
    assert {about["steps"] for about in trained.values()} == {8}
    assert len({about["started_from"] for about in trained.values()}) == 1
    assert trained["specs"]["settings"]["weights"] == list(Training().weights)
    steps = pd.read_parquet(place / "similarities.parquet")
    assert steps.groupby("judge").size().to_dict() == dict.fromkeys(("specs", "stretched", "contrastive"), 40 * 14)
    page = (long / "specs.html").read_text()
    assert "Seed 3" in page and page.count("data:image/svg+xml") == 3


def test_the_same_bytes_from_nothing(project: Project, long: Path) -> None:
    again = run(project, "again", cores=1)
    one, other = project.artifacts("long"), project.artifacts("again")
    # The page shows where results lie nowhere.
    assert sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path)) == []
    assert len(one) > 30 and again != long


def test_one_setting_reruns_what_depends_on_it(project: Project, long: Path) -> None:
    assert planned(project, "long.yaml") == set()
    text = (project.root / "long.yaml").read_text()
    (project.root / "changed.yaml").write_text(text.replace("lr: 0.001", "lr: 0.002"))
    assert {"train_specs", "intrinsic", "make_specs_page"} <= planned(project, "changed.yaml")
    assert not {"describe_images", "train_base", "stretch", "load_dataset"} & planned(project, "changed.yaml")


def test_captions_of_ones_own(project: Project, long: Path) -> None:
    """A judge that is there, a table to train on and one to test on: nothing is drawn or described."""
    place, images = "long/sketch/specs/3", "long/sketch/images"
    (project.root / "own.yaml").write_text(
        "results: own\ncache: .cache_own\ndataset: {source: table, table: {file: captions.csv}}\nspecs:\n"
        f"  data: {{examples: {place}/examples.parquet, images: {images}, increments: {place}/steps.parquet,"
        f" increment_images: {images}}}\n"
        f"  base: {{model: {place}/base/model.json, pretrained: {place}/base/weights.safetensors, epochs: 0}}\n"
        "  training: {epochs: 1, batch: 20, accumulation: 1, precision: fp32}\n"
    )
    (project.root / "captions.csv").write_text("image_id,text\na,a red bird\n")
    project.snakemake("own.yaml", "--", "own/specs.html")
    table = pd.read_csv(project.root / "own" / "specs.csv")
    before = pd.read_csv(long / "specs.csv")
    same = [t[(t["judge"] == "stretched")]["value"].tolist() for t in (table, before)]
    assert same[0] == same[1]


def test_sketches_alone_can_be_described(project: Project) -> None:
    (project.root / "bad.yaml").write_text(
        "dataset: {source: table, table: {file: captions.csv}}\nspecs: {seeds: [0]}\n"
    )
    failed = project.snakemake("bad.yaml", "--dry-run", check=False)
    said = failed.stdout + failed.stderr
    assert failed.returncode and "specs.data: null describes sketches, and dataset.source is table" in said
