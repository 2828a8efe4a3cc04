"""The table, figures and page of long captions."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from tests.plot.overlapping import overlapping
from tests.report.pages import Page
from workflow_scripts.plot.page import described
from workflow_scripts.specs import draw_specs
from workflow_scripts.specs.section import COLUMNS, lines, read_intrinsic
from workflow_scripts.specs.steps import DrawSpecs

VALUES = {"specs": 0.9, "stretched": 0.6, "contrastive": 0.65}


def estimate(value: float, half: float = 0.02) -> dict[str, float | int]:
    return {"value": value, "low": value - half, "high": value + half, "n": 40, "images": 40}


def make_place(tmp_path: Path) -> Path:
    """Write the artifacts of two seeds; the gain of neg over contrastive is uncertain."""
    for seed in (0, 1):
        place = tmp_path / "birds" / "specs" / str(seed)
        measures = {j: {m: estimate(v) for m in ("pos", "neg", "increment_rate")} for j, v in VALUES.items()}
        between = []
        for other in ("stretched", "contrastive"):
            gain = {m: estimate(VALUES["specs"] - VALUES[other]) for m in ("pos", "increment_rate")}
            gain["neg"] = estimate(0.01 if other == "contrastive" else 0.1)
            between.append({"a": "specs", "b": other, "b_hash": "0", **gain})
        found = {
            "seed": seed, "resamples": 200, "captions": 40, "left_out": {},
            "judges": [{"folder": j, **measures[j]} for j in VALUES], "differences": between,
        }  # fmt: skip
        for name in VALUES:
            (place / name).mkdir(parents=True)
        (place / "intrinsic.json").write_text(json.dumps(found))
        about = {"model": "small<248>", "positions_before": 77, "context_length": 248, "positions_kept": 20}
        (place / "stretched" / "manifest.json").write_text(json.dumps(about))
        (place / "specs" / "manifest.json").write_text(json.dumps({"examples": 1234, "steps": 56}))
        steps = [
            (f"{image}.png", "0", step, f"It & <is>{' red.' * step}", "no" if step else None, 0.1 * step, 0.05, judge)
            for judge in VALUES
            for image in "ab"
            for step in range(4)
        ]
        columns = ["image", "caption_id", "step", "text", "negative", "similarity", "negative_similarity", "judge"]
        pd.DataFrame(steps, columns=columns).to_parquet(place / "similarities.parquet")
    return tmp_path


results = pytest.fixture(make_place)


def draw(results: Path) -> dict[str, Path]:
    place = results / "birds" / "specs"
    made = {name: results / "figures" / f"birds_specs_{name}.svg" for name in ("measures", "gains", "growing")}
    made["table"] = results / "specs.csv"
    made["page"] = results / "specs.html"
    intrinsic = [place / seed / "intrinsic.json" for seed in "01"]
    similarities = place / "0" / "similarities.parquet"
    of_results = {"results": results, "dataset": "birds", "settings": {"specs": "</pre><script>"}}
    draw_specs.main(DrawSpecs(intrinsic=intrinsic, similarities=similarities, **of_results, **made))
    return made


def test_table(results: Path) -> None:
    draw(results)
    table = pd.read_csv(results / "specs.csv", keep_default_na=False)
    assert list(table.columns) == COLUMNS and len(table) == 2 * 5 * 3
    row = table[(table["seed"] == 1) & (table["measure"] == "neg") & (table["against"] == "contrastive")].iloc[0]
    assert (row["judge"], row["value"], row["low"], row["high"], row["n"]) == ("specs", 0.01, -0.01, 0.03, 40)


def test_a_difference_is_bold_if_its_interval_excludes_0(results: Path) -> None:
    place = results / "birds" / "specs"
    shown = lines(read_intrinsic([place / "0" / "intrinsic.json"]), 0)
    assert [line["name"] for line in shown] == [
        "loss of SPECS", "stretched, before training", "plain contrastive",
        "loss of SPECS − stretched, before training", "loss of SPECS − plain contrastive",
    ]  # fmt: skip
    bold = [[cell["bold"] for cell in line["cells"]] for line in shown]
    assert bold == [[False] * 3] * 3 + [[True] * 3, [True, False, True]]
    assert shown[4]["cells"][1] == {"value": "1.0", "interval": "[−1.0, 3.0]", "bold": False}


def test_figures_describe_their_numbers_and_are_reproducible(results: Path) -> None:
    made = draw(results)
    first = {name: path.read_bytes() for name, path in made.items()}
    title, told = described(first["gains"])
    assert title == "What the loss of SPECS gains" and "seed 1, Neg, specs − contrastive: 1.0" in told
    texts = "".join(ElementTree.fromstring(first["measures"]).itertext())
    assert "Pos" in described(first["measures"])[1] and texts
    draw(results)
    assert {name: path.read_bytes() for name, path in made.items()} == first


def make_page(results: Path) -> Path:
    return draw(results)["page"]


def test_no_text_of_a_growing_caption_lies_on_another(results: Path) -> None:
    steps = pd.read_parquet(results / "birds" / "specs" / "0" / "similarities.parquet")
    longer = steps["text"].str.replace("red.", "There is a hooked yellow crown.")
    steps = steps.assign(text=longer, similarity=steps["similarity"] / 40)[steps["image"] == "a.png"]
    with draw_specs.style():
        figure = draw_specs.draw_growing(steps)
    assert overlapping(figure) == []


def test_page(results: Path) -> None:
    page = Page(make_page(results).read_text())
    assert {"Seed 0", "Seed 1"} <= {word.strip() for word in page.words}
    assert "small<248> was stretched from 77 to 248 positions" in page.text and "1,234 long captions" in page.text
    assert not any(tag == "script" for tag, _ in page.tags)
    figures = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(figures) == 3 and all((results / f["src"]).is_file() and f["alt"] for f in figures)
    rows = [[cell.strip() for cell in row] for row in page.rows]
    assert ["loss of SPECS − plain contrastive", "25.0[23.0, 27.0]", "1.0[−1.0, 3.0]", "25.0[23.0, 27.0]"] in rows
