"""The table, figures and page of long captions, of the small run."""

from pathlib import Path

import pandas as pd

from compclip.io import read_json
from compclip.plot.page import title_and_description
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.shown import SPECS_COLUMNS, measure_lines
from tests.report.pages import Page


def test_table_figures_and_page_of_the_small_run(results: Path) -> None:
    table = pd.read_csv(results / "specs.csv", keep_default_na=False)
    result = read_json(results / "sketch" / "specs" / "0" / "intrinsic.json")
    assert list(table.columns) == SPECS_COLUMNS and len(table) == 5 * 3
    for judge in (*result["judges"], *result["differences"]):
        name, against = (judge["folder"], "") if "folder" in judge else (judge["a"], judge["b"])
        rows = table[(table["judge"] == name) & (table["against"] == against)].set_index("measure")
        for measure in INTRINSIC_MEASURES:
            assert rows.loc[measure, [*judge[measure]]].to_dict() == judge[measure]
    title, description = title_and_description((results / "figures" / "sketch_specs_measures.svg").read_bytes())
    assert title == "How each judge tells right details from wrong ones" and "Neg, seed 0, contrastive: " in description
    page = Page((results / "specs.html").read_text())
    assert "was stretched from 77 to 248 positions" in page.text and "200 long captions" in page.text
    shown = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(shown) == 1 and all((results / f["src"]).is_file() and f["alt"] for f in shown)


def test_a_difference_of_many_is_not_bold() -> None:
    rows = [
        {"seed": 0, "judge": "specs", "against": against, "measure": measure, "value": 0.01, "low": low, "high": 0.03}
        for against in ("contrastive", "")
        for measure, low in zip(INTRINSIC_MEASURES, (-0.01, 0.001, -0.01), strict=True)
    ]
    values, gains = measure_lines(pd.DataFrame(rows), 0)
    assert (values["name"], gains["name"]) == ("loss of SPECS", "loss of SPECS − plain contrastive")
    assert not any(cell["bold"] for line in (values, gains) for cell in line["cells"])
    assert gains["cells"][0] == {"value": "1.0", "interval": "[−1.0, 3.0]", "bold": False}
