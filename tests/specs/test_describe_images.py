"""Descriptions of sketches: training and test images, and the tables."""

from pathlib import Path

import pandas as pd

from compclip.dataset.sketch.description import SHORT
from compclip.io import read_table
from compclip.specs.describe_images import DESCRIPTION_SCHEMAS, SHORT_CAPTIONS, divide_described
from tests.project import Project
from tests.scripts import job
from tests.specs.evaluated import refused
from workflow_scripts.specs import describe_images


def test_tables_of_the_small_run_and_of_another_seed(first_run: Project, tmp_path: Path) -> None:
    dataset = first_run.root / "results" / "sketch"
    examples, steps, captions, splits = (
        read_table(dataset / "specs" / "0" / f"{name}.parquet", schema) for name, schema in DESCRIPTION_SCHEMAS.items()
    )
    assert splits["split"].value_counts().to_dict() == {"train": 200, "test_seen": 40}
    names = splits.assign(image=splits["image_id"] + ".png").groupby("split")["image"].agg(set)
    assert set(examples["image"]) == names["train"] and set(steps["image"]) == names["test_seen"]
    assert all((dataset / "images" / image).is_file() for image in (*examples["image"], *steps["image"]))
    for _, of_image in steps.groupby("image"):
        assert of_image["step"].tolist() == list(range(14))
        assert of_image["negative"].isna().tolist() == [True] + 13 * [False]
        assert of_image["text"].is_monotonic_increasing  # each starts with the previous one
    assert captions.groupby("image_id").size().to_dict() == dict.fromkeys(splits["image_id"], SHORT_CAPTIONS)
    assert (captions["text"].str.count(r"\.") == SHORT).all()
    scenes = pd.read_parquet(dataset / "scenes.parquet").set_index("image_id")
    image, text = examples.iloc[0]
    color = scenes.loc[image.removesuffix(".png"), "throat:color"]
    (sentence,) = [s for s in text.split(". ") if "throat" in s]
    assert ("grey" if "grey" in sentence else color) in sentence
    inputs = {name: dataset / f"{name}.parquet" for name in ("scenes", "images")}
    outputs = {name: tmp_path / f"{name}.parquet" for name in DESCRIPTION_SCHEMAS}
    describe_images.main(job(inputs, outputs, wildcards={"seed": "1"}, test=40))
    for name, file in outputs.items():
        assert file.read_bytes() != (dataset / "specs" / "0" / file.name).read_bytes(), name
    message = refused(lambda: divide_described([str(number) for number in range(10)], 9, 0))
    assert "specs.test: 9 of 10 images leave fewer than two to train on" in message
