"""Join the tables of several runs: rows, whose cells keep their text, or chapters of those to read, by run."""

import pandas as pd

from compclip.io import write_text
from compclip.report.join_tables import join_tables
from workflow_scripts.job import Job, run

# What precedes each run's chapter of a table to read.
HEADINGS = {".md": "# {}\n\n", ".tex": "% {}\n"}


def main(job: Job) -> None:
    for output in job.output.joined:
        files = dict(zip(job.params.runs, (each for each in job.input.tables if each.name == output.name), strict=True))
        if heading := HEADINGS.get(output.suffix):
            text = "\n".join(heading.format(name) + file.read_text(encoding="utf-8") for name, file in files.items())
        else:
            tables = {name: pd.read_csv(file, dtype=str, keep_default_na=False) for name, file in files.items()}
            text = join_tables(tables).to_csv(index=False, lineterminator="\n")
        write_text(text, output)


if __name__ == "__main__":
    run(main)
