"""Stage specs through Snakemake: from drawn birds to the page, the same bytes again, and what a change reruns."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.project import Project
from workflow_scripts.core.io import read_json
from workflow_scripts.specs.config import Training

SPECS = """
results: {results}
cache: .cache_{results}
dataset: {{source: sketch, sketch: {{images: 120, species: 10}}}}
specs:
  seeds: [3]
  test: 40
  bootstrap: 200
  base: {{model: sketch_text, epochs: 1, batch: 40, train_on: train}}
  training: {{epochs: 2, batch: 10, accumulation: 2, lr: 0.001, warmup: 0.1, precision: fp32}}
"""
OWN = """
results: own
cache: .cache_own
dataset: {source: table, table: {file: captions.csv}}
specs:
  data:
    examples: long/sketch/specs/3/examples.parquet
    images: long/sketch/images
    increments: long/sketch/specs/3/steps.parquet
    increment_images: long/sketch/images
  base:
    model: long/sketch/specs/3/base/model.json
    pretrained: long/sketch/specs/3/base/weights.safetensors
    epochs: 0
  training: {epochs: 1, batch: 20, accumulation: 1, precision: fp32}
"""


def run(project: Project, results: str, cores: int = 2) -> Path:
    (project.root / f"{results}.yaml").write_text(SPECS.format(results=results))
    project.snakemake(f"{results}.yaml", "--", f"{results}/specs.csv", f"{results}/specs.html", cores=cores)
    return project.root / results


@pytest.fixture(scope="module")
def long(project: Project) -> Path:
    return run(project, "long")


@pytest.mark.slow
def test_it_runs_to_the_page(long: Path) -> None:
    table = pd.read_csv(long / "specs.csv", keep_default_na=False)
    assert len(table) == 5 * 3 and set(table["seed"]) == {3} and (table["n"] == 40).all()
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    values = table[table["against"] == ""].set_index(["judge", "measure"])["value"]
    for row in table[table["against"] != ""].itertuples():
        difference = values[row.judge, row.measure] - values[row.against, row.measure]
        assert row.value == pytest.approx(difference, abs=2e-6)
    folder = long / "sketch" / "specs" / "3"
    trained = [read_json(folder / name / "manifest.json") for name in ("specs", "contrastive")]
    assert [manifest["steps"] for manifest in trained] == [8, 8]
    assert trained[0]["started_from"] == trained[1]["started_from"]
    assert trained[0]["settings"]["weights"] == list(Training().weights)
    steps = pd.read_parquet(folder / "similarities.parquet")
    assert steps.groupby("judge").size().to_dict() == dict.fromkeys(("specs", "stretched", "contrastive"), 40 * 14)
    page = (long / "specs.html").read_text()
    assert "Seed 3" in page and len(re.findall(r'src="figures/[^"]+\.svg"', page)) == 3


@pytest.mark.slow
def test_the_same_bytes_with_a_cold_cache_and_one_core(project: Project, long: Path) -> None:
    again = run(project, "again", cores=1)
    assert project.artifacts("long") == project.artifacts("again")
    assert len(project.artifacts("again")) > 30 and again != long


@pytest.mark.slow
def test_a_setting_reruns_what_depends_on_it(project: Project, long: Path) -> None:
    assert project.planned("long.yaml", "long/specs.html") == {}
    text = (project.root / "long.yaml").read_text()
    (project.root / "changed.yaml").write_text(text.replace("lr: 0.001", "lr: 0.002"))
    planned = project.planned("changed.yaml", "long/specs.html")
    assert {"train_specs", "intrinsic", "make_specs_page"} <= planned.keys()
    assert not {"describe_images", "train_base", "stretch", "load_dataset"} & planned.keys()


@pytest.mark.slow
def test_the_users_captions(project: Project, long: Path) -> None:
    """With a trained judge, a training table and a test table nothing is drawn or described."""
    (project.root / "own.yaml").write_text(OWN)
    (project.root / "captions.csv").write_text("image_id,text\na,a red bird\n")
    project.snakemake("own.yaml", "--", "own/specs.html")
    tables = [pd.read_csv(project.root / name / "specs.csv") for name in ("own", "long")]
    own, before = (table[table["judge"] == "stretched"]["value"].tolist() for table in tables)
    assert own == before


def test_only_sketches_can_be_described(project: Project) -> None:
    (project.root / "bad.yaml").write_text(
        "dataset: {source: table, table: {file: captions.csv}}\nspecs: {seeds: [0]}\n"
    )
    failed = project.snakemake("bad.yaml", "--dry-run", check=False)
    assert failed.returncode
    assert "specs.data: null describes sketches, but dataset.source is table" in failed.stdout + failed.stderr
