"""What pages share: their templates, and figures that stand in the page itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from workflow_scripts.report.drawing import described
from workflow_scripts.report.examples import data_uri
from workflow_scripts.report.labels import interval, percent

TEMPLATES = Path(__file__).parent / "templates"


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
