"""Write the tasks as pages: one HTML file for each batch, with all it needs in it, and an index.

A page works by keyboard and by touch, goes on where it was after a reload, sends each answer to the server that
served it (``serve``), and offers the answers as a file. Nothing but its own server is ever asked for anything.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic_folder
from workflow_scripts.human.tasks import ALL_KINDS, page_name, read_tasks
from workflow_scripts.plot.page import data_uri

TEMPLATES = Path(__file__).parent / "templates"
# Keys that answer, beside clicking.
KEYS = {
    "perceptual": {"1": "1", "2": "2", "ArrowLeft": "1", "ArrowRight": "2"},
    "match": {"y": "yes", "n": "no", "1": "yes", "2": "no", "ArrowLeft": "yes", "ArrowRight": "no"},
    "caption": {"1": "1", "2": "2", "ArrowLeft": "1", "ArrowRight": "2"},
    "compound": {"1": "1", "2": "2", "3": "3"},
}
KEYS["confusing"] = KEYS["match"]
HINTS = {
    "perceptual": "Tap the picture, or press the key 1 or 2, or the left or right arrow.",
    "match": "Tap the answer, or press Y or N, or the left or right arrow.",
    "caption": "Tap the text, or press the key 1 or 2, or the left or right arrow.",
    "compound": "Tap the picture, or press the key 1, 2 or 3.",
}
HINTS["confusing"] = HINTS["match"]
PICTURES = ["picture_1", "picture_2", "picture_3"]


def inline_json(value: Any) -> str:
    """JSON that may stand in a script element: no text in it can end the element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def content_hash(text: str) -> str:
    """``text`` as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )


def _inline(name: str) -> tuple[str, str]:
    """A template's text, which stands in the page as it is, and its hash."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return text, content_hash(text)


def page_html(page: pd.DataFrame, pictures: Path) -> str:
    """One page. page: the rows of one batch, columns of ``tasks.TASKS``; pictures: the folder of its files."""
    page = page.sort_values("place")
    kind = page["kind"].iloc[0]
    shown = [[p for p in row if p] for row in page[PICTURES].itertuples(index=False)]
    texts = [[t for t in row if t] for row in page[["text_1", "text_2"]].itertuples(index=False)]
    names = list(dict.fromkeys(name for row in shown for name in row))
    # Another name wherever a task is another, so that a browser mixes no two studies' answers.
    digest = hashlib.blake2b(" ".join(page["task_id"]).encode(), digest_size=4).hexdigest()
    batch = f"{page_name(kind, int(page['batch'].iloc[0]))}_{digest}"
    data = {
        "batch": batch,
        "keys": KEYS[kind],
        "pictures": [data_uri((pictures / name).read_bytes()) for name in names],
        "tasks": [
            {"id": task, "pictures": [names.index(name) for name in row], "texts": said}
            for task, row, said in zip(page["task_id"], shown, texts, strict=True)
        ],
    }
    style, style_hash = _inline("page.css")
    script, script_hash = _inline("page.js")
    return environment().get_template("page.html.j2").render(
        title=ALL_KINDS[kind].question, kind=ALL_KINDS[kind], kind_name=kind, hint=HINTS[kind], count=len(page),
        data=inline_json(data),
        style=style, style_hash=style_hash, script=script, script_hash=script_hash,
    )  # fmt: skip


def index_html(pages: pd.DataFrame) -> str:
    """The list of pages. pages: columns kind, batch, tasks."""
    style, style_hash = _inline("page.css")
    kinds = [
        (
            ALL_KINDS[kind],
            [{"file": f"{page_name(kind, row.batch)}.html", "tasks": row.tasks} for row in rows.itertuples()],
        )
        for kind, rows in pages.groupby("kind", sort=False)
    ]
    return environment().get_template("index.html.j2").render(style=style, style_hash=style_hash, kinds=kinds)


def main(options: argparse.Namespace) -> None:
    tasks = read_tasks(options.tasks)
    pages = tasks.groupby(["kind", "batch"], sort=False).size().rename("tasks").reset_index()
    with atomic_folder(options.output) as folder:
        for (kind, batch), page in tasks.groupby(["kind", "batch"], sort=False):
            path = folder / f"{page_name(kind, batch)}.html"
            path.write_text(page_html(page, options.pictures), encoding="utf-8", newline="\n")
        (folder / "index.html").write_text(index_html(pages), encoding="utf-8", newline="\n")
        size = sum(path.stat().st_size for path in folder.iterdir())
    log.info("%d pages in %s, %.1f MB", len(pages), options.output, size / 1e6)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--tasks", type=Path, required=True, help="tasks.parquet")
    result.add_argument("--pictures", type=Path, required=True, help="folder of the pictures")
    result.add_argument("--output", type=Path, required=True, help="folder of the pages")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
