"""Write the tasks as web pages: one self-contained HTML file for each batch, and an index."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic_folder, write_text
from workflow_scripts.human.config import Notice
from workflow_scripts.human.steps import WritePages
from workflow_scripts.human.tasks import ALL_KINDS, PICTURES, TEXTS, page_name, read_tasks
from workflow_scripts.plot.page import data_uri, render

TEMPLATES = Path(__file__).parent / "templates"
_SIDE_KEYS = {"1": "1", "2": "2", "ArrowLeft": "1", "ArrowRight": "2"}
_YES_NO_KEYS = {"y": "yes", "n": "no", "1": "yes", "2": "no", "ArrowLeft": "yes", "ArrowRight": "no"}
_YES_NO_HINT = "Tap the answer, or press Y or N, or the left or right arrow."
# The keys that answer each kind of task, and how a page explains them.
ANSWER_KEYS = {
    "perceptual": (_SIDE_KEYS, "Tap the picture, or press the key 1 or 2, or the left or right arrow."),
    "match": (_YES_NO_KEYS, _YES_NO_HINT),
    "caption": (_SIDE_KEYS, "Tap the text, or press the key 1 or 2, or the left or right arrow."),
    "compound": ({"1": "1", "2": "2", "3": "3"}, "Tap the picture, or press the key 1, 2 or 3."),
    "confusing": (_YES_NO_KEYS, _YES_NO_HINT),
}


def inline_json(value: Any) -> str:
    """Return JSON for a script element; no text in it can end the element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _inlined(**files: str) -> dict[str, Any]:
    """Return each file, which a page contains unchanged, and the hash by which its content security policy names it."""
    texts = {name: (TEMPLATES / file).read_text(encoding="utf-8") for name, file in files.items()}
    digests = {name: hashlib.sha256(text.encode()).digest() for name, text in texts.items()}
    return texts | {f"{name}_hash": f"sha256-{base64.b64encode(raw).decode()}" for name, raw in digests.items()}


def page_html(page: pd.DataFrame, pictures: Path, notice: Notice) -> str:
    """Return the page of one batch of ``tasks.TASKS``; ``notice`` is what participants are told before they begin."""
    page = page.sort_values("place")
    kind = page["kind"].iloc[0]
    files = [[name for name in row if name] for row in page[PICTURES].itertuples(index=False)]
    texts = [[text for text in row if text] for row in page[TEXTS].itertuples(index=False)]
    distinct = list(dict.fromkeys(name for row in files for name in row))
    # The name depends on the tasks, so that a browser does not mix the answers of two studies.
    digest = hashlib.blake2b(" ".join(page["task_id"]).encode(), digest_size=4).hexdigest()
    keys, hint = ANSWER_KEYS[kind]
    data = {
        "batch": f"{page_name(kind, int(page['batch'].iloc[0]))}_{digest}",
        "keys": keys,
        "pictures": [data_uri((pictures / name).read_bytes()) for name in distinct],
        "tasks": [
            {"id": task, "pictures": [distinct.index(name) for name in names], "texts": shown}
            for task, names, shown in zip(page["task_id"], files, texts, strict=True)
        ],
    }
    context = {"kind": ALL_KINDS[kind], "kind_name": kind, "hint": hint, "count": len(page), "notice": notice}
    inlined = _inlined(style="page.css", script="page.js")
    return render("page.html.j2", context | inlined | {"data": inline_json(data)})


def main(step: WritePages) -> None:
    pages: dict[str, list[dict[str, Any]]] = {}
    with atomic_folder(step.pages) as folder:
        for (kind, batch), page in read_tasks(step.tasks).groupby(["kind", "batch"], sort=False):
            file = f"{page_name(kind, batch)}.html"
            pages.setdefault(kind, []).append({"file": file, "tasks": len(page)})
            write_text(page_html(page, step.pictures, step.notice), folder / file)
        kinds = [(ALL_KINDS[kind], of_kind) for kind, of_kind in pages.items()]
        index = render("index.html.j2", _inlined(style="page.css") | {"kinds": kinds, "notice": step.notice})
        write_text(index, folder / "index.html")
        size = sum(path.stat().st_size for path in folder.iterdir())
    log.info("%d pages in %s, %.1f MB", sum(map(len, pages.values())), step.pages, size / 1e6)


if __name__ == "__main__":
    cli.run(main)
