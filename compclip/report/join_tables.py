"""Join the tables of several runs."""

from pathlib import Path

import pandas as pd

from compclip.core.errors import UserError


def join_tables(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of runs as one with a first column ``run``."""
    # Runs of different versions may have different columns.
    columns = set(next(iter(tables.values())))
    if any(set(table) != columns for table in tables.values()):
        raise UserError("the tables of the runs have different columns; make all of them again")
    named = [table.assign(run=run) for run, table in tables.items()]
    joined = pd.concat(named, ignore_index=True)
    return joined[["run", *joined.columns.drop("run")]]


def join_chapters(files: dict[str, Path], heading: str) -> str:
    """Return the texts of runs as chapters."""
    chapters = []
    for run, file in files.items():
        text = file.read_text(encoding="utf-8")
        chapters.append(heading.format(run) + text)
    return "\n".join(chapters)
