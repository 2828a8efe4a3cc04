"""Pages: one HTML file each, which fetches nothing and runs no script; every text of the data is escaped.

A stage with something to show has a module ``section`` with one function, ``section(layout)``, which returns a
``PageSection``, or None if there is nothing to show, and a template ``<stage>/templates/<stage>_section.html.j2``.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jinja2
from markupsafe import Markup

from workflow_scripts.core.cli import log
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.io import write_text
from workflow_scripts.plot.labels import interval, percent

SVG_TITLE = "{http://www.w3.org/2000/svg}title"
SVG_DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


@dataclass(frozen=True)
class PageSection:
    """What a stage shows on a page: a heading, the file name of a template without it, and the template's variables."""

    title: str
    template: str
    context: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-")


def data_uri(raw: bytes) -> str:
    """Return a PNG, JPEG or SVG file as a URI that contains it."""
    kind = "png" if raw.startswith(b"\x89PNG") else "jpeg" if raw.startswith(b"\xff\xd8") else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page or a part of one; ``{{ part | body }}`` renders a ``PageSection``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(sorted(ROOT.glob("workflow_scripts/*/templates"))),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip

    def body(section: PageSection) -> Markup:
        return Markup(environment.get_template(section.template).render(section.context))

    environment.filters.update(percent=percent, data_uri=data_uri, body=body)
    environment.globals["interval"] = interval
    return environment.get_template(template).render(context)


def described(svg: bytes) -> tuple[str, str]:
    """Return the title and the description with which ``drawing.save`` wrote a figure."""
    root = ElementTree.fromstring(svg)
    return root.findtext(f".//{SVG_TITLE}", ""), root.findtext(f".//{SVG_DESCRIPTION}", "")


def show_figures(files: Iterable[Path]) -> list[dict[str, str]]:
    """Return each SVG as a data URI (``source``), with the file's ``name``, its ``title`` and ``alternative`` text."""
    shown = []
    for file in files:
        raw = file.read_bytes()
        title, description = described(raw)
        alternative = f"{title}: {description}" if description else title
        shown.append({"name": file.stem, "title": title, "alternative": alternative, "source": data_uri(raw)})
    return shown


def write_page(file: Path, template: str, context: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Write a page; its template finds ``settings`` as indented JSON beside ``context``."""
    page = render(template, {**context, "settings": json.dumps(settings, indent=2, ensure_ascii=False)})
    write_text(page, file)
    log.info("%s: %.1f MB", file, len(page.encode()) / 1e6)


def write_section_page(file: Path, dataset: str, section: PageSection, settings: Mapping[str, Any]) -> None:
    write_page(file, "section_page.html.j2", {"dataset": dataset, "section": section}, settings)
