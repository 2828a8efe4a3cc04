"""The results of stage specs for figures, table and page: each judge's measures, and the
differences between judges.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.io import read_json
from compclip.plot.labels import interval, percent
from compclip.plot.table_view import Line, TableCell
from compclip.specs.config import INTRINSIC_MEASURES

# Labels of judges, in order.
JUDGE_NAMES = {
    "stretched": "stretched, before training",
    "contrastive": "plain contrastive",
    "specs": "loss of SPECS",
}
# A row per measurement; ``against`` is the judge whose value is subtracted, or "".
SPECS_COLUMNS = ["seed", "judge", "against", "measure", "value", "low", "high", "n", "images"]


def read_intrinsic(files: Sequence[Path]) -> pd.DataFrame:
    """Return the table (SPECS_COLUMNS) of the results of rule ``intrinsic``, a file per seed."""
    rows: list[dict[str, Any]] = []
    for file in files:
        result = read_json(file)
        values = [(judge["folder"], "", judge) for judge in result["judges"]]
        values += [
            (difference["a"], difference["b"], difference) for difference in result["differences"]
        ]
        for judge, against, measures in values:
            about = {"seed": result["seed"], "judge": judge, "against": against}
            rows += [
                {**about, "measure": measure, **measures[measure]} for measure in INTRINSIC_MEASURES
            ]
    # float, because all intervals may be missing
    return pd.DataFrame(rows)[SPECS_COLUMNS].astype({"value": float, "low": float, "high": float})


def measure_lines(table: pd.DataFrame, seed: int) -> list[Line]:
    """Return a seed's lines of the table, in its order: one per judge, then one per difference."""
    lines = []
    for (judge, against), rows in table[table["seed"] == seed].groupby(
        ["judge", "against"], sort=False
    ):
        measures = rows.set_index("measure").loc[list(INTRINSIC_MEASURES)].itertuples()
        cells = [TableCell(percent(row.value), interval(row.low, row.high)) for row in measures]
        lines.append(
            Line(" − ".join(JUDGE_NAMES[name] for name in (judge, against) if name), cells)
        )
    return lines
