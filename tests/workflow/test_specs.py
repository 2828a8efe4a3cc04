"""Stage specs through Snakemake: the small run's table and page, what a change reruns, and the user's captions."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.project import Project

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


def test_the_small_run(first_run: Project) -> None:
    results = first_run.root / "results"
    table = pd.read_csv(results / "specs.csv", keep_default_na=False)
    assert len(table) == 5 * 3 and set(table["seed"]) == {0} and (table["n"] == 40).all()
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    values = table[table["against"] == ""].set_index(["judge", "measure"])["value"]
    for row in table[table["against"] != ""].itertuples():
        difference = values[row.judge, row.measure] - values[row.against, row.measure]
        assert row.value == pytest.approx(difference, abs=2e-6)
    steps = pd.read_parquet(results / "sketch" / "specs" / "0" / "similarities.parquet")
    assert steps.groupby("judge").size().to_dict() == dict.fromkeys(("specs", "stretched", "contrastive"), 40 * 14)
    page = (results / "specs.html").read_text()
    assert "Seed 0" in page and len(re.findall(r'src="figures/[^"]+\.svg"', page)) == 2


@pytest.mark.slow
def test_the_users_captions(first_run: Project, tmp_path: Path) -> None:
    """With a trained judge, a training table and a test table nothing is drawn or described."""
    project = first_run.fork(tmp_path)
    (project.root / "own.yaml").write_text(OWN)
    (project.root / "captions.csv").write_text("image_id,text\na,a red bird\n")
    project.snakemake("own.yaml", "--", "own/specs.html")
    tables = [pd.read_csv(project.root / name / "specs.csv") for name in ("own", "results")]
    own, before = (table[table["judge"] == "stretched"]["value"].tolist() for table in tables)
    assert own == before
