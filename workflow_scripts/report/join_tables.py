"""The tables that ``make_table`` wrote of several runs, each joined to one: its rows, or parts, by run."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text

# What stands above each run's part of a table to read.
HEADS = {".md": "# {}\n\n", ".tex": "% {}\n"}


def join_data(tables: dict[str, str]) -> str:
    """CSV texts, by run, under one head; a first column says the run, all others stand as they were."""
    read = {run: pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for run, text in tables.items()}
    joined = pd.concat([table.assign(run=run) for run, table in read.items()], ignore_index=True)
    if joined.isna().any(axis=None):
        raise UserError("the runs' tables have not the same columns: make them anew")
    return joined[["run", *joined.columns.drop("run")]].to_csv(index=False, lineterminator="\n")


def main(options: argparse.Namespace) -> None:
    for output in options.output:
        files = [file for file in options.tables if file.name == output.name]
        texts = {run: file.read_text(encoding="utf-8") for run, file in zip(options.runs, files, strict=True)}
        if output.suffix in HEADS:
            write_text("\n".join(HEADS[output.suffix].format(run) + text for run, text in texts.items()), output)
        else:
            write_text(join_data(texts), output)


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--runs", nargs="+", required=True, help="their names")
    parser.add_argument("--tables", type=Path, nargs="+", required=True, help="what is joined, in the runs' order")
    parser.add_argument("--output", type=Path, nargs="+", required=True, help="each joins the tables of its name")
    cli.run(main, parser)
