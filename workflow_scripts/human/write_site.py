"""Write the tasks as a crowd-work site takes them: for each kind a batch CSV and the layout that shows its rows.

The layout is Mechanical Turk's: its ``${variables}`` are the CSV's columns, and one row is one task. The CSV names
the pictures by the address at which the folder ``pictures`` will lie; its texts are escaped, since the site puts
them in the layout as they are. The site's results come back through ``analyze``.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
from pathlib import Path

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder
from workflow_scripts.human.tasks import ALL_KINDS, read_tasks
from workflow_scripts.human.write_pages import environment

# The columns of each kind's CSV, beside task_id.
COLUMNS = {
    "perceptual": ("picture_1", "picture_2"),
    "match": ("picture_1", "text_1"),
    "caption": ("picture_1", "text_1", "text_2"),
    "compound": ("picture_1", "picture_2", "picture_3", "text_1"),
    "confusing": ("picture_1", "picture_2", "picture_3", "text_1"),
}


def site_text(text: str) -> str:
    """``text`` on one line, as it may stand in HTML; what a UTF-8 file of the site may not hold, as an entity."""
    escaped = html.escape(" ".join(text.split()))
    # The site refuses characters of four bytes.
    return "".join(c if ord(c) < 0x10000 else f"&#{ord(c)};" for c in escaped)


def batch_csv(tasks: pd.DataFrame, base: str) -> str:
    """A row for each task, in the order of pages. tasks: of one kind; base: where the pictures lie."""
    kind = tasks["kind"].iloc[0]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(["task_id", *COLUMNS[kind]])
    for row in tasks.sort_values(["batch", "place"]).to_dict("records"):
        cells = [
            f"{base.rstrip('/')}/{row[name]}" if name.startswith("picture") else site_text(row[name])
            for name in COLUMNS[kind]
        ]
        writer.writerow([row["task_id"], *cells])
    return buffer.getvalue()


def layout_html(kind: str) -> str:
    """The site's layout of one kind of task."""
    return (
        environment().get_template("site.html.j2").render(kind=ALL_KINDS[kind], kind_name=kind, columns=COLUMNS[kind])
    )


def main(options: argparse.Namespace) -> None:
    if not options.base.startswith("https://"):
        raise UserError(f"--base {options.base}: must start with https://, for the site shows nothing else")
    tasks = read_tasks(options.tasks)
    with atomic_folder(options.output) as folder:
        for kind, rows in tasks.groupby("kind", sort=False):
            (folder / f"{kind}.csv").write_bytes(batch_csv(rows, options.base).encode())
            (folder / f"{kind}.html").write_text(layout_html(kind), encoding="utf-8", newline="\n")
            log.info("%s: %d tasks to post with %s.csv and %s.html", options.output, len(rows), kind, kind)
    log.info("put the files of the folder pictures at %s first", options.base)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--tasks", type=Path, required=True, help="tasks.parquet")
    result.add_argument("--base", required=True, metavar="URL", help="where the folder pictures will lie")
    result.add_argument("--output", type=Path, required=True, help="folder of the CSVs and layouts")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
