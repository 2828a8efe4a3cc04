"""The pages' section on long captions: each judge's measures, and the differences between
judges.
"""

import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.plot.page import PageSection, show_figures
from compclip.specs.config import INTRINSIC_MEASURES
from compclip.specs.specs_view import measure_lines
from workflow_scripts.layout import Layout


def section(layout: Layout) -> PageSection:
    # Only empty cells are missing values: a judge may be named NA.
    table = pd.read_csv(layout.results / "specs.csv", keep_default_na=False, na_values=[""])
    # Rows of one judge alone are against none.
    table["against"] = table["against"].fillna("")
    seeds = list(dict.fromkeys(table["seed"]))
    # The first seed stands for all in what does not depend on the seed.
    folder = layout.data / "specs" / str(seeds[0])
    stretched = read_json(folder / "stretched" / "manifest.json")
    trained = read_json(folder / "specs" / "manifest.json")
    result = read_json(folder / "intrinsic.json")
    lines = [(seed, measure_lines(table, seed)) for seed in seeds]
    negatives = table.loc[table["measure"] == "neg", "n"]
    context = {
        "drawn": (folder / "splits.parquet").is_file(),
        "stretched": stretched,
        "trained": trained,
        "seeds": lines,
        "measures": list(INTRINSIC_MEASURES.values()),
        "resamples": result["resamples"],
        "captions": result["captions"],
        "images": int(table["images"].max()),
        "excluded": result["excluded"],
        "negatives": bool(negatives.any()),
        "figures": show_figures([layout.figure("specs_measures")]),
    }
    return PageSection("Long captions", "specs_section.html.j2", context)
