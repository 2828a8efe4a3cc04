"""The names of pairs, and the list of those held out."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json


def pair_names(table: pd.DataFrame) -> pd.Series:
    """``adjective_noun`` of each row, as in the published files."""
    # ``str.cat`` makes Python's strings of all, a gigabyte for four million rows.
    return (table["adjective"] + "_" + table["noun"]).rename("adjective")


def split_pair(pair: str) -> tuple[str, str]:
    """``(adjective, noun)`` of ``adjective_noun``; ``sample_heldout`` refuses words that hold a ``_``."""
    adjective, _, noun = pair.partition("_")
    return adjective, noun


def read_heldout(path: str | Path) -> list[str]:
    """Return the held-out pairs of a heldout.json, sorted; raises UserError if there are none."""
    content = read_json(path)
    pairs = content.get("pairs") if isinstance(content, dict) else None
    if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, str) for pair in pairs):
        raise UserError(f"{path}: no list of pairs; make it again with sample_heldout")
    return sorted(pairs)
