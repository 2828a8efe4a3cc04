"""The results of stage specs for figures, table and page: each judge's measures, and the differences between judges."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.io import read_json
from compclip.plot.labels import interval, percent

# The names of judges and measures that readers see, in their order.
JUDGES = {"stretched": "stretched, before training", "contrastive": "plain contrastive", "specs": "loss of SPECS"}
MEASURES = {"pos": "Pos", "neg": "Neg", "increment_rate": "increment rate"}
FIGURES = ("measures", "gains", "growing")
# A row per measurement; ``against`` is the judge whose value is subtracted, or empty.
COLUMNS = ["seed", "judge", "against", "measure", "value", "low", "high", "n", "images"]


def read_intrinsic(files: Sequence[Path]) -> pd.DataFrame:
    """Return the table (COLUMNS) of the results of rule ``intrinsic``, a file per seed."""
    rows: list[dict[str, Any]] = []
    for file in files:
        result = read_json(file)
        values = [(judge["folder"], "", judge) for judge in result["judges"]]
        values += [(difference["a"], difference["b"], difference) for difference in result["differences"]]
        for judge, against, measures in values:
            about = {"seed": result["seed"], "judge": judge, "against": against}
            rows += [{**about, "measure": measure, **measures[measure]} for measure in MEASURES]
    # float, because there may be no interval at all.
    return pd.DataFrame(rows)[COLUMNS].astype({"value": float, "low": float, "high": float})


def pick(table: pd.DataFrame, **values: Any) -> dict[str, Any] | None:
    chosen = table[(table[list(values)] == pd.Series(values)).all(axis=1)]
    return None if chosen.empty else chosen.iloc[0].to_dict()


def is_certain(difference: Mapping[str, Any]) -> bool:
    return bool(difference["low"] > 0 or difference["high"] < 0)


def lines(table: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """Return a seed's lines of the table: one per judge, then one per difference, bold if its interval excludes 0."""
    result = []
    for (judge, against), rows in table[table["seed"] == seed].groupby(["judge", "against"], sort=False):
        cells = [
            {"value": percent(row["value"]), "interval": interval(row["low"], row["high"]),
             "bold": bool(against) and is_certain(row)}
            for row in rows.set_index("measure").loc[list(MEASURES)].to_dict("records")
        ]  # fmt: skip
        name = JUDGES.get(judge, judge)
        result.append({"name": f"{name} − {JUDGES.get(against, against)}" if against else name, "cells": cells})
    return sorted(result, key=lambda line: " − " in line["name"])
