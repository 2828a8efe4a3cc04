"""What pages share: their templates, and figures that stand in the page itself."""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.io import write_text
from workflow_scripts.plot.drawing import described
from workflow_scripts.plot.labels import interval, percent

TEMPLATES = sorted(ROOT.glob("workflow_scripts/*/templates"))


def data_uri(raw: bytes) -> str:
    """A PNG, JPEG or SVG file as a URI that holds it."""
    kind = "png" if raw.startswith(b"\x89PNG") else "jpeg" if raw.startswith(b"\xff\xd8") else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


def render(template: str, context: dict[str, Any]) -> str:
    """A page, every text escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["data_uri"] = data_uri
    environment.globals["interval"] = interval
    return environment.get_template(template).render(context)


def show_figures(files: Iterable[Path]) -> list[dict[str, str]]:
    """SVGs as data URIs, with what they say of themselves: title and alternative text; name is the file's."""
    shown = []
    for file in files:
        raw = file.read_bytes()
        title, description = described(raw)
        alternative = f"{title}: {description}" if description else title
        shown.append({"name": file.stem, "title": title, "alternative": alternative, "source": data_uri(raw)})
    return shown


def stage_arguments(description: str | None) -> argparse.ArgumentParser:
    """The options of a step that writes a stage's own page."""
    parser = cli.parser(description)
    parser.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--settings", default="{}", metavar="JSON", help="the config's sections that the page shows")
    return parser


def write_stage_page(
    options: argparse.Namespace, stage: str, section: str, read: Callable[[Path, str], dict[str, Any]]
) -> None:
    """STAGE.html by its template, which finds as ``section`` what ``read`` finds of the results and the data set."""
    settings = json.dumps(json.loads(options.settings), indent=2, ensure_ascii=False)
    found = read(options.results, options.dataset)
    page = render(f"{stage}.html.j2", {"dataset": options.dataset, section: found, "settings": settings})
    file = options.results / f"{stage}.html"
    write_text(page, file)
    log.info("%s: %.1f MB", file, len(page.encode()) / 1e6)
