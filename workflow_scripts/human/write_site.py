"""Write the tasks for a crowd-work site: a batch CSV and a layout for each kind."""

import html

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic_folder, write_text
from workflow_scripts.human.config import Notice
from workflow_scripts.human.steps import WriteSite
from workflow_scripts.human.tasks import ALL_KINDS, read_tasks, shown_columns
from workflow_scripts.plot.page import render


def site_text(text: str) -> str:
    """Return ``text`` on one line, escaped for HTML; characters that the site refuses become entities."""
    escaped = html.escape(" ".join(text.split()))
    # The site refuses UTF-8 characters of four bytes, and a spreadsheet executes a text that begins like a formula.
    return "".join(
        f"&#{ord(c)};" if ord(c) >= 0x10000 or (place == 0 and c in "=+-@＝＋－＠") else c
        for place, c in enumerate(escaped)
    )


def batch_csv(tasks: pd.DataFrame, base: str) -> str:
    """Return a row for each task of one kind, in the order of pages; ``base`` is the address of the pictures."""
    columns = shown_columns(tasks["kind"].iloc[0])
    table = tasks.sort_values(["batch", "place"])[["task_id", *columns]]
    for name in columns:
        is_picture = name.startswith("picture")
        table[name] = [f"{base.rstrip('/')}/{cell}" if is_picture else site_text(cell) for cell in table[name]]
    return table.to_csv(index=False, lineterminator="\r\n")


def layout_html(kind: str, notice: Notice) -> str:
    texts = [site_text(text).replace("$", "&#36;") for text in notice.texts()]
    context = {"kind": ALL_KINDS[kind], "kind_name": kind, "columns": shown_columns(kind), "notice": texts}
    return render("site.html.j2", context)


def main(step: WriteSite) -> None:
    with atomic_folder(step.site) as folder:
        for kind, rows in read_tasks(step.tasks).groupby("kind", sort=False):
            (folder / f"{kind}.csv").write_bytes(batch_csv(rows, step.base).encode())
            write_text(layout_html(kind, step.notice), folder / f"{kind}.html")
            log.info("%s: %d tasks; publish %s.csv with %s.html", step.site, len(rows), kind, kind)
    log.info("first upload the files of the folder pictures to %s", step.base)


if __name__ == "__main__":
    cli.run(main)
