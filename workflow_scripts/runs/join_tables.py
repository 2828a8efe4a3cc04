"""Join the tables of several runs, by run: rows, whose cells keep their text, or chapters of
Markdown and LaTeX.
"""

import pandas as pd

from compclip.core.errors import UserError
from compclip.core.tables import MEASUREMENTS
from compclip.io import read_table, write_frame, write_text
from workflow_scripts.job import Job, run_script

# Headings of a run's chapter, by format.
HEADINGS = {".md": "# {}\n\n", ".tex": "% {}\n"}


def join_rows(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of runs as one with a first column ``run``."""
    joined = pd.concat([table.assign(run=run) for run, table in tables.items()], ignore_index=True)
    if any(set(table) != {*joined} - {"run"} for table in tables.values()):
        raise UserError("the tables of the runs have different columns; make all of them again")
    return joined[["run", *joined.columns.drop("run")]]


def main(job: Job) -> None:
    for output in job.output.joined:
        files = dict(
            zip(
                job.params.runs,
                (file for file in job.input.tables if file.name == output.name),
                strict=True,
            )
        )
        if output.suffix == ".parquet":
            write_frame(
                join_rows({name: read_table(file, MEASUREMENTS) for name, file in files.items()}),
                output,
            )
            continue
        if heading := HEADINGS.get(output.suffix):
            text = "\n".join(
                heading.format(name) + file.read_text(encoding="utf-8")
                for name, file in files.items()
            )
        else:
            rows = {
                name: pd.read_csv(file, dtype=str, keep_default_na=False)
                for name, file in files.items()
            }
            text = join_rows(rows).to_csv(index=False, lineterminator="\n")
        write_text(text, output)


if __name__ == "__main__":
    run_script(main)
