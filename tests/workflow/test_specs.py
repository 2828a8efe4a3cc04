"""Stage specs through Snakemake, with the user's captions."""

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
