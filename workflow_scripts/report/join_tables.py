"""Join the tables of several runs, by run: rows, whose cells keep their text, or chapters of
Markdown and LaTeX.
"""

import pandas as pd

from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.parquet import read_table, write_frame
from compclip.core.tables import MEASUREMENTS
from compclip.report.join_tables import join_chapters, join_tables
from workflow_scripts.job import Job, run_script

# Headings of a run's chapter, by format.
HEADINGS = {".md": "# {}\n\n", ".tex": "% {}\n"}


def main(job: Job) -> None:
    for output in job.output.joined:
        # The inputs list the tables of each kind in the order of the runs.
        same_name = [file for file in job.input.tables if file.name == output.name]
        files = dict(zip(job.params.runs, same_name, strict=True))
        if output.suffix == ".parquet":
            tables = {run: read_table(file, MEASUREMENTS) for run, file in files.items()}
            # Not by its schema, which has no column for the run.
            write_frame(join_tables(tables), output)
        elif output.suffix in HEADINGS:
            write_text(join_chapters(files, HEADINGS[output.suffix]), output)
        else:
            # As text, because a number that is read and written again may get other digits.
            rows = {
                run: pd.read_csv(file, dtype=str, keep_default_na=False)
                for run, file in files.items()
            }
            write_text(join_tables(rows).to_csv(index=False, lineterminator="\n"), output)


if __name__ == "__main__":
    run_script(main)
