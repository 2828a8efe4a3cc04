"""The divergences that the stage ``divergence`` measured: beside a score, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core.io import read_table
from workflow_scripts.core.tables import DIVERGENCE, TESTS
from workflow_scripts.plot.labels import PART_NAMES

# Of table.csv: what a column holds, by definition and column of divergence.parquet.
COLUMNS = {
    "atom_divergence": ("pairs", "atom_divergence"),
    "compound_divergence": ("pairs", "compound_divergence"),
    "subgraph_divergence": ("subgraphs", "compound_divergence"),
}
# Keysers et al. 2020.
SYMBOLS = {"atoms": "D_A", "compounds": "D_C"}


def read_divergences(place: Path) -> pd.DataFrame:
    """place: the folder of a composition."""
    return read_table(place / "divergence.parquet", DIVERGENCE)


def measured(divergences: pd.DataFrame, definition: str, split: str, texts: str) -> Mapping[str, Any]:
    """The row of one measurement; empty where it was not made."""
    rows = divergences[
        (divergences["definition"] == definition) & (divergences["split"] == split) & (divergences["texts"] == texts)
    ]
    return {} if rows.empty else rows.iloc[0].to_dict()


def beside_score(divergences: pd.DataFrame, split: str, prompts: str) -> dict[str, float | None]:
    """``COLUMNS`` of a score: how far the texts that were prompted for are from train, None where nobody measured it.

    prompts: as in table.csv. Just those captions of test_seen that were swapped are not measured by themselves.
    """
    if split == "test_seen" and prompts == "swapped":
        return dict.fromkeys(COLUMNS)
    return {
        name: measured(divergences, definition, split, "prompts").get(column)
        for name, (definition, column) in COLUMNS.items()
    }


def share(value: float) -> str:
    """A divergence as people read it."""
    return "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def random_share(row: Mapping[str, Any], kind: str) -> str:
    """What random divisions give. kind: ``atom`` or ``compound``."""
    mean, deviation = row[f"random_{kind}_mean"], row[f"random_{kind}_std"]
    return share(mean) + (f" ± {deviation:.3f}" if deviation >= 0.0005 else "")


def divergence_lines(divergences: pd.DataFrame, texts: str) -> list[tuple[str, list[tuple[str, str] | None]]]:
    """A line for each kind of part: its name, and by test split the divergence and the random one, None for neither."""
    lines = []
    for (definition, kind), name in PART_NAMES.items():
        column = kind.removesuffix("s")
        rows = [measured(divergences, definition, split, texts) for split in TESTS]
        cells = [(share(r[f"{column}_divergence"]), random_share(r, column)) if r else None for r in rows]
        if any(cells):
            lines.append((f"{kind}: {name}", cells))
    return lines


def divergence_note(divergences: pd.DataFrame) -> str:
    """What the lines of ``divergence_lines`` mean; nothing where nothing was measured."""
    if divergences.empty:
        return ""
    shuffles = int(divergences["shuffles"].iloc[0])
    return (
        "Divergence of train from what is prompted for, 0 (alike) to 1 (nothing in common): D_A of the atoms, D_C of"
        " the compounds (Keysers et al. 2020); random: mean and standard deviation over"
        f" {shuffles} random divisions of the same images at the same sizes, test's with as many captions."
    )
