"""Descriptions of sketches: training and test images, and the tables."""

from pathlib import Path

import pandas as pd
import pytest

from workflow_scripts.core import tables
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_frame, write_table
from workflow_scripts.dataset.sketch.description import SHORT
from workflow_scripts.dataset.sources.sketch import Settings, load
from workflow_scripts.specs import describe_images
from workflow_scripts.specs.describe_images import SHORT_CAPTIONS, divide
from workflow_scripts.specs.steps import DescribeImages


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sketch")
    (folder / "images").mkdir()
    loaded = load(Settings(images=40, species=5), seed=0, limit=None, folder=folder / "images", cache=folder)
    write_frame(loaded.tables["scenes"], folder / "scenes.parquet")
    images = loaded.images.assign(
        path="sketch/images/" + loaded.images["path"], width=pd.array([96] * 40, "Int64"),
        height=pd.array([96] * 40, "Int64"), bbox_x=float("nan"), bbox_y=float("nan"), bbox_w=float("nan"),
        bbox_h=float("nan"),
    )  # fmt: skip
    write_table(images, folder / "images.parquet", tables.IMAGES)
    return folder


def run(dataset: Path, output: Path, seed: int = 0) -> None:
    names = ("examples", "steps", "captions", "splits")
    outputs = {name: output / f"{name}.parquet" for name in names}
    inputs = {name: dataset / f"{name}.parquet" for name in ("scenes", "images")}
    describe_images.main(DescribeImages(**inputs, test=10, seed=seed, **outputs))


def test_tables_of_a_data_set(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path)
    examples = read_table(tmp_path / "examples.parquet", tables.EXAMPLES)
    steps = read_table(tmp_path / "steps.parquet", tables.STEPS)
    splits = read_table(tmp_path / "splits.parquet", tables.SPLIT)
    assert splits["split"].value_counts().to_dict() == {"train": 30, "test_seen": 10}
    names = splits.assign(image=splits["image_id"] + ".png").groupby("split")["image"].agg(set)
    assert set(examples["image"]) == names["train"] and set(steps["image"]) == names["test_seen"]
    assert all((dataset / "images" / image).is_file() for image in (*examples["image"], *steps["image"]))
    for _, own in steps.groupby("image"):
        assert own["step"].tolist() == list(range(14)) and own["negative"].isna().tolist() == [True] + 13 * [False]
        assert own["text"].is_monotonic_increasing  # each starts with the previous one
    captions = read_table(tmp_path / "captions.parquet", tables.CAPTIONS)
    assert captions.groupby("image_id").size().to_dict() == dict.fromkeys(splits["image_id"], SHORT_CAPTIONS)
    assert (captions["text"].str.count(r"\.") == SHORT).all()
    scene = pd.read_parquet(dataset / "scenes.parquet").set_index("image_id")
    image = examples["image"].iloc[0]
    color = scene.loc[image.removesuffix(".png"), "throat:color"]
    (sentence,) = [s for s in examples["text"].iloc[0].split(". ") if "throat" in s]
    assert ("grey" if "grey" in sentence else color) in sentence


def test_bytes_depend_on_the_seed(dataset: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(dataset, tmp_path / name, seed)
    for file in ("examples.parquet", "steps.parquet", "captions.parquet", "splits.parquet"):
        a, b, c = ((tmp_path / name / file).read_bytes() for name in "abc")
        assert a == b != c


def test_too_few_images_to_train_on() -> None:
    with pytest.raises(UserError, match=r"specs\.test: 9 of 10 images leave fewer than two to train on"):
        divide([str(number) for number in range(10)], 9, 0)
