"""Join the tables of several runs."""

from collections.abc import Mapping

import pandas as pd

from compclip.core.errors import UserError


def join_tables(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return tables of text, by run, as one with a first column ``run``."""
    joined = pd.concat([table.assign(run=run) for run, table in tables.items()], ignore_index=True)
    if joined.isna().any(axis=None):
        raise UserError("the tables of the runs have different columns; make all of them again")
    return joined[["run", *joined.columns.drop("run")]]
