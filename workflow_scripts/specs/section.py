"""What stage specs found, as figure, table and page tell it: each judge by each measure, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core.io import read_json
from workflow_scripts.core.layout import Layout
from workflow_scripts.plot.labels import interval, percent
from workflow_scripts.plot.page import PageSection, show_figures

# What a reader is told of each judge and each measure, in their order.
JUDGES = {"stretched": "stretched, before training", "contrastive": "plain contrastive", "specs": "loss of SPECS"}
MEASURES = {"pos": "Pos", "neg": "Neg", "increment_rate": "increment rate"}
# Of a table that has a row a measurement: against is the judge whose value is taken off, or nothing.
FIGURES = ("measures", "gains", "growing")
COLUMNS = ["seed", "judge", "against", "measure", "value", "low", "high", "n", "images"]


def read_intrinsic(files: Sequence[Path]) -> pd.DataFrame:
    """The table (COLUMNS) of intrinsic.json of each seed, as the rule ``intrinsic`` writes it."""
    rows: list[dict[str, Any]] = []
    for file in files:
        found = read_json(file)
        of_judges = [(judge["folder"], "", judge) for judge in found["judges"]]
        between = [(one["a"], one["b"], one) for one in found["differences"]]
        for judge, against, values in [*of_judges, *between]:
            for measure in MEASURES:
                rows.append(
                    {"seed": found["seed"], "judge": judge, "against": against, "measure": measure, **values[measure]}
                )
    # Of one image there is no interval.
    return pd.DataFrame(rows)[COLUMNS].astype({"value": float, "low": float, "high": float})


def pick(table: pd.DataFrame, **wanted: Any) -> dict[str, Any] | None:
    """The one row with these values; None where there is none."""
    chosen = table
    for column, value in wanted.items():
        chosen = chosen[chosen[column] == value]
    return None if chosen.empty else chosen.iloc[0].to_dict()


def lines(table: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """Of one seed, a line a judge, then a line a difference: a cell for each measure, bold where 0 is left out."""
    own = table[table["seed"] == seed]
    found = []
    for judge, against in own[["judge", "against"]].drop_duplicates().itertuples(index=False):
        cells = []
        for measure in MEASURES:
            row = pick(own, judge=judge, against=against, measure=measure)
            sure = bool(against) and (row["low"] > 0 or row["high"] < 0)
            cells.append(
                {"value": percent(row["value"]), "interval": interval(row["low"], row["high"]), "bold": bool(sure)}
            )
        name = JUDGES.get(judge, judge)
        found.append({"name": f"{name} − {JUDGES.get(against, against)}" if against else name, "cells": cells})
    return sorted(found, key=lambda line: " − " in line["name"])


def text_table(table: pd.DataFrame) -> str:
    """All seeds as a Markdown table, in per cent and points, a star where the interval of a difference leaves out 0."""
    head = ["seed", "judge", *MEASURES.values()]
    rows = [head, ["---"] * len(head)]
    for seed in dict.fromkeys(table["seed"]):
        for line in lines(table, seed):
            cells = [f"{c['value']} {c['interval']}{' *' if c['bold'] else ''}" for c in line["cells"]]
            rows.append([str(seed), line["name"], *cells])
    said = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{said}\n\nIn per cent, with 95 % intervals over images. A star: the interval leaves out 0.\n"


def section(layout: Layout) -> PageSection:
    """Return the section of all seeds."""
    table = pd.read_csv(layout.results / "specs.csv", keep_default_na=False, na_values=[""])
    table["against"] = table["against"].fillna("")
    seeds = list(dict.fromkeys(table["seed"]))
    place = layout.data / "specs" / str(seeds[0])
    trained, stretched = (read_json(place / name / "manifest.json") for name in ("specs", "stretched"))
    found = read_json(place / "intrinsic.json")
    context = {
        "drawn": (place / "splits.parquet").is_file(),
        "stretched": stretched,
        "trained": trained,
        "seeds": [(seed, lines(table, seed)) for seed in seeds],
        "measures": list(MEASURES.values()),
        "resamples": found["resamples"],
        "captions": found["captions"],
        "images": int(table["images"].max()),
        "left_out": found["left_out"],
        "negatives": bool(table.loc[table["measure"] == "neg", "n"].any()),
        "figures": show_figures(layout.figure(f"specs_{name}") for name in FIGURES),
    }
    return PageSection("Long captions", "specs_section.html.j2", context)
