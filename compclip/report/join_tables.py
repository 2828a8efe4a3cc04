"""Join the tables of several runs: rows, or chapters of those to read, by run."""

import io

import pandas as pd

from compclip.core import cli
from compclip.core.errors import UserError
from compclip.io import write_text
from compclip.report.steps import JoinTables

# What precedes each run's chapter of a table to read.
HEADINGS = {".md": "# {}\n\n", ".tex": "% {}\n"}


def join_data(tables: dict[str, str]) -> str:
    """Return CSV texts, by run, as one with a first column ``run``; all other cells keep their text."""
    read = {run: pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for run, text in tables.items()}
    joined = pd.concat([table.assign(run=run) for run, table in read.items()], ignore_index=True)
    if joined.isna().any(axis=None):
        raise UserError("the tables of the runs have different columns; make all of them again")
    return joined[["run", *joined.columns.drop("run")]].to_csv(index=False, lineterminator="\n")


def main(step: JoinTables) -> None:
    for output in step.joined:
        files = [file for file in step.tables if file.name == output.name]
        texts = {run: file.read_text(encoding="utf-8") for run, file in zip(step.runs, files, strict=True)}
        if output.suffix in HEADINGS:
            write_text("\n".join(HEADINGS[output.suffix].format(run) + text for run, text in texts.items()), output)
        else:
            write_text(join_data(texts), output)


if __name__ == "__main__":
    cli.run(main)
