"""The table, figures and page of long captions, of the small run."""

from pathlib import Path

import pandas as pd

from compclip.io import read_json
from compclip.plot.drawing import style
from compclip.plot.page import described
from compclip.specs.draw_specs import draw_growing
from compclip.specs.shown import COLUMNS, MEASURES, lines
from tests.plot.overlapping import overlapping
from tests.report.pages import Page
from tests.scripts import job
from workflow_scripts.specs import draw_specs


def test_table(results: Path) -> None:
    table = pd.read_csv(results / "specs.csv", keep_default_na=False)
    result = read_json(results / "sketch" / "specs" / "0" / "intrinsic.json")
    assert list(table.columns) == COLUMNS and len(table) == 5 * 3
    for judge in (*result["judges"], *result["differences"]):
        name, against = (judge["folder"], "") if "folder" in judge else (judge["a"], judge["b"])
        rows = table[(table["judge"] == name) & (table["against"] == against)].set_index("measure")
        for measure in MEASURES:
            assert rows.loc[measure, [*judge[measure]]].to_dict() == judge[measure]


def test_a_difference_is_bold_if_its_interval_excludes_0() -> None:
    rows = [
        {"seed": 0, "judge": "specs", "against": against, "measure": measure, "value": 0.01, "low": low, "high": 0.03}
        for against in ("contrastive", "")
        for measure, low in zip(MEASURES, (-0.01, 0.001, -0.01), strict=True)
    ]
    values, gains = lines(pd.DataFrame(rows), 0)
    assert (values["name"], gains["name"]) == ("loss of SPECS", "loss of SPECS − plain contrastive")
    assert [cell["bold"] for cell in values["cells"]] == [False] * 3
    assert [cell["bold"] for cell in gains["cells"]] == [False, True, False]
    assert gains["cells"][0] == {"value": "1.0", "interval": "[−1.0, 3.0]", "bold": False}


def test_figures_and_page_are_reproducible(results: Path, tmp_path: Path) -> None:
    folder = results / "sketch" / "specs" / "0"
    figures = {name: tmp_path / f"sketch_specs_{name}.svg" for name in ("measures", "gains", "growing")}
    reads = {"intrinsic": [folder / "intrinsic.json"], "similarities": folder / "similarities.parquet"}
    writes = {**figures, "table": tmp_path / "specs.csv", "page": tmp_path / "specs.html"}
    settings = {"specs": "</pre><script>"}
    draw_specs.main(job(reads, writes, results=str(results), dataset="sketch", settings=settings))
    for file in figures.values():
        assert file.read_bytes() == (results / "figures" / file.name).read_bytes()
    assert writes["table"].read_bytes() == (results / "specs.csv").read_bytes()
    title, description = described(figures["gains"].read_bytes())
    assert title == "What the loss of SPECS gains" and "seed 0, Neg, specs − contrastive: " in description
    page = Page(writes["page"].read_text())
    assert "was stretched from 77 to 248 positions" in page.text and "200 long captions" in page.text
    assert not any(tag == "script" for tag, _ in page.tags)
    shown = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(shown) == 3 and all((results / f["src"]).is_file() and f["alt"] for f in shown)


def test_no_text_of_a_growing_caption_lies_on_another(results: Path) -> None:
    steps = pd.read_parquet(results / "sketch" / "specs" / "0" / "similarities.parquet")
    with style():
        assert overlapping(draw_growing(steps[steps["image"] == steps["image"][0]])) == []
