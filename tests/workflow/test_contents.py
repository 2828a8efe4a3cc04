"""A run notices changes of the user's files that keep their sizes and times."""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from PIL import Image

from tests.project import Project


def blacken(folder: Path) -> None:
    """Replace the images by others of equal size, time and inode."""
    for file in folder.rglob("*.png"):
        status = file.stat()
        file.write_bytes(bytes(status.st_size))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.slow
def test_other_images_of_equal_size_are_scored_again(first_run: Project, tmp_path: Path) -> None:
    run = first_run.fork(tmp_path / "run")
    made = tmp_path / "made"
    shutil.copytree(run.root / "results" / "sketch" / "color" / "generated" / "faithful" / "images", made)
    config = yaml.safe_load((run.root / "small.yaml").read_text())
    config["generate"]["generators"].append({"name": "mine", "kind": "folder", "path": str(made)})
    (run.root / "mine.yaml").write_text(yaml.safe_dump(config))
    target = "results/sketch/color/scores/0/mine"
    run.snakemake("mine.yaml", "--", target)
    assert run.planned("mine.yaml", target) == {}
    blacken(made)
    assert run.planned("mine.yaml", target) == {"generate_images": 1, "score_images": 1}


@pytest.mark.slow
def test_other_images_of_the_data_set_are_read_again(tmp_path: Path) -> None:
    run = Project(tmp_path).copy()
    (tmp_path / "images").mkdir()
    Image.new("RGB", (20, 20), "red").save(tmp_path / "images" / "a.png")
    (tmp_path / "t.csv").write_text("image_id,caption\na,a red bird\n")
    table = {"file": "t.csv", "images": "images"}
    judge = {"model": "sketch", "pretrained": None, "trainable": ["*"], "epochs": 1}
    config = {"results": "out", "dataset": {"source": "table", "table": table}, "pairs": {"nouns": "birds"}}
    config["judge"] = judge
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config))
    run.snakemake("mine.yaml", "--", "out/table/captions.parquet")
    assert run.planned("mine.yaml", "out/table/captions.parquet") == {}
    blacken(tmp_path / "images")
    assert run.planned("mine.yaml", "out/table/captions.parquet") == {"load_dataset": 1}
