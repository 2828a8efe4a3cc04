"""The results of stage specs for figures, table and page: each judge's measures, and the
differences between judges.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json
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
        for judge in result["judges"]:
            rows += _measure_rows(result["seed"], judge["folder"], "", judge)
        for gains in result["differences"]:
            rows += _measure_rows(result["seed"], gains["a"], gains["b"], gains)
    # float, because all intervals may be missing
    return pd.DataFrame(rows)[SPECS_COLUMNS].astype({"value": float, "low": float, "high": float})


def _measure_rows(
    seed: int, judge: str, against: str, estimates: Mapping[str, Any]
) -> list[dict[str, Any]]:
    labels = {"seed": seed, "judge": judge, "against": against}
    return [{**labels, "measure": measure, **estimates[measure]} for measure in INTRINSIC_MEASURES]


def _estimate_cell(row: Any) -> TableCell:
    return TableCell(percent(row.value), interval(row.low, row.high))


def measure_lines(table: pd.DataFrame, seed: int) -> list[Line]:
    """Return a seed's lines of the table, in its order: one per judge, then one per difference."""
    lines = []
    measured = table[table["seed"] == seed]
    for (judge, against), rows in measured.groupby(["judge", "against"], sort=False):
        label = JUDGE_NAMES[judge]
        if against:
            label += f" − {JUDGE_NAMES[against]}"
        ordered = rows.set_index("measure").loc[list(INTRINSIC_MEASURES)]
        lines.append(Line(label, [_estimate_cell(row) for row in ordered.itertuples()]))
    return lines
