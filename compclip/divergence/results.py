"""The divergences measured by stage ``divergence``, for tables and texts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import DIVERGENCE, TESTS
from compclip.plot.labels import PART_NAMES
from compclip.plot.table_view import Line, TableCell

# Measures of scores.parquet: the definition and the column of divergence.parquet.
COLUMNS = {name: ("pairs", name) for name in ("atom_divergence", "compound_divergence")}
COLUMNS["subgraph_divergence"] = ("subgraphs", "compound_divergence")


def read_divergences(folder: Path) -> pd.DataFrame:
    return read_table(folder / "divergence.parquet", DIVERGENCE)


def find_row(
    divergences: pd.DataFrame, definition: str, split: str, texts: str
) -> Mapping[str, Any]:
    """Return the row of one measurement, empty if there is none."""
    key = {"definition": definition, "split": split, "texts": texts}
    matches = divergences[[*key]] == pd.Series(key)
    rows = divergences[matches.all(axis=1)]
    if rows.empty:
        return {}
    return rows.iloc[0].to_dict()


def three_decimals(value: float) -> str:
    """Return a divergence with three decimals."""
    return "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def random_share(row: Mapping[str, Any], kind: str) -> str:
    """Return mean and standard deviation over random divisions, as text; ``kind`` is ``atom`` or
    ``compound``.
    """
    mean = three_decimals(row[f"random_{kind}_mean"])
    deviation = row[f"random_{kind}_std"]
    if deviation < 0.0005:  # 0.000 in three decimals
        return mean
    return f"{mean} ± {deviation:.3f}"


def _cell(row: Mapping[str, Any], kind: str) -> TableCell:
    value = three_decimals(row[f"{kind}_divergence"])
    return TableCell(value, random_share(row, kind))


def divergence_lines(divergences: pd.DataFrame, texts: str) -> list[Line]:
    """Return a line for each kind of part: by test split, its divergence with the random one, None
    if not measured.
    """
    lines = []
    for (definition, kind), name in PART_NAMES.items():
        unit = kind.removesuffix("s")
        rows = [find_row(divergences, definition, split, texts) for split in TESTS]
        cells = [_cell(row, unit) if row else None for row in rows]
        if any(cells):
            lines.append(Line(f"{kind}: {name}", cells))
    return lines


def divergence_note(divergences: pd.DataFrame) -> str:
    """Return a note that explains ``divergence_lines``, "" if there are none."""
    if divergences.empty:
        return ""
    shuffles = int(divergences["shuffles"].iloc[0])
    return (
        "Divergence of train from the prompts, 0 (equal) to 1 (nothing in common): D_A of the "
        "atoms, D_C of the"
        " compounds (Keysers et al. 2020); random: mean and standard deviation over"
        f" {shuffles} random divisions of the same images at the same sizes, test's with as many "
        "captions."
    )
