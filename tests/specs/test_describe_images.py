"""Descriptions of sketches, and the table, figures and page of long captions, of the small run."""

from pathlib import Path

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.dataset.sketch.description import SHORT
from compclip.plot.page import title_and_description
from compclip.plot.table_view import TableCell
from compclip.specs import describe_images as library
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.describe_images import DESCRIPTION_SCHEMAS, SHORT_CAPTIONS
from compclip.specs.specs_view import SPECS_COLUMNS, measure_lines
from tests.project import Project
from tests.report.pages import Page
from tests.scripts import job
from tests.specs.evaluated import refused
from workflow_scripts.specs import describe_images


def test_tables_of_the_small_run_and_of_another_seed(first_run: Project, tmp_path: Path) -> None:
    dataset = first_run.root / "results" / "sketch"
    examples, steps, captions, splits = (
        read_table(dataset / "specs" / "0" / f"{name}.parquet", schema)
        for name, schema in DESCRIPTION_SCHEMAS.items()
    )
    assert splits["split"].value_counts().to_dict() == {"train": 200, "test_seen": 40}
    names = splits.assign(image=splits["image_id"] + ".png").groupby("split")["image"].agg(set)
    assert set(examples["image"]) == names["train"] and set(steps["image"]) == names["test_seen"]
    assert all(
        (dataset / "images" / image).is_file() for image in (*examples["image"], *steps["image"])
    )
    for _, of_image in steps.groupby("image"):
        assert of_image["step"].tolist() == list(range(14))
        assert of_image["negative"].isna().tolist() == [True] + 13 * [False]
        assert of_image["text"].is_monotonic_increasing  # each starts with the previous one
    assert captions.groupby("image_id").size().to_dict() == dict.fromkeys(
        splits["image_id"], SHORT_CAPTIONS
    )
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
    message = refused(lambda: library.describe_images(scenes[:10], test=9))
    assert "specs.test: 9 of 10 images leave fewer than two to train on" in message


def test_table_figures_and_page_of_the_small_run(results: Path) -> None:
    table = pd.read_csv(results / "specs.csv", keep_default_na=False)
    result = read_json(results / "sketch" / "specs" / "0" / "intrinsic.json")
    assert list(table.columns) == SPECS_COLUMNS and len(table) == 5 * 3
    for judge in (*result["judges"], *result["differences"]):
        name, against = (judge["folder"], "") if "folder" in judge else (judge["a"], judge["b"])
        rows = table[(table["judge"] == name) & (table["against"] == against)].set_index("measure")
        for measure in INTRINSIC_MEASURES:
            assert rows.loc[measure, [*judge[measure]]].to_dict() == judge[measure]
    title, description = title_and_description(
        (results / "figures" / "sketch_specs_measures.svg").read_bytes()
    )
    assert (
        title == "How each judge tells right details from wrong ones"
        and "Neg, seed 0, contrastive: " in description
    )
    page = Page((results / "specs.html").read_text())
    assert (
        "was stretched from 77 to 248 positions" in page.text and "200 long captions" in page.text
    )
    shown = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(shown) == 1 and all((results / f["src"]).is_file() and f["alt"] for f in shown)
    lines = measure_lines(table.assign(value=0.01, low=-0.01, high=0.03), 0)
    names = ["loss of SPECS", "stretched, before training", "plain contrastive"]
    assert [line.name for line in lines] == [
        *names,
        *(f"{names[0]} − {name}" for name in names[1:]),
    ]
    # A difference of many is not bold.
    assert {cell for line in lines for cell in line.cells} == {
        TableCell("1.0", "[−1.0, 3.0]", bold=False)
    }
