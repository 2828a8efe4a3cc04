"""Pages: HTML beside the artifacts that they show. They fetch nothing else, and all texts of the
data are escaped.

Figures and pictures are links relative to the results folder, so a browser loads them only when
they are visible; the first ones are embedded, so that the page file alone shows the result.

A stage with a part of a page has a script ``section`` with one function, ``section(layout)``, which
returns a ``PageSection``, or None if there is nothing to show, and a template
``<stage>/templates/<stage>_section.html.j2``.
"""

import base64
import html as html_text
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import jinja2
from markupsafe import Markup

from compclip.core.artifacts.files import write_text
from compclip.core.identity.code import ROOT
from compclip.core.log import log
from compclip.plot.labels import interval, percent

PIXELS_IN_POINT = 4 / 3
# The longer side of an embedded image in pixels: twice that of the page, for dense screens.
THUMBNAIL = 144
# The elements of an SVG in which ``drawing.save`` writes title and description.
TITLE_ELEMENT = ".//{http://www.w3.org/2000/svg}title"
DESCRIPTION_ELEMENT = ".//{http://purl.org/dc/elements/1.1/}description"


@dataclass(frozen=True)
class PageSection:
    """A stage's part of a page: a heading, the name of a template, and the template's variables."""

    title: str
    template: str
    context: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-")


def data_uri(raw: bytes) -> str:
    """Return a PNG, JPEG or SVG file as a data URI."""
    kind = "svg+xml"
    if raw.startswith(b"\x89PNG"):
        kind = "png"
    elif raw.startswith(b"\xff\xd8"):
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


def thumbnail(file: Path) -> str:
    """Return an image file as the data URI of a small JPEG. Raises BrokenImage."""
    # Steps that make tables read pages' functions, but no image.
    from compclip.core.reading.pictures import read_rgb

    image = read_rgb(file)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    small = io.BytesIO()
    image.save(small, "JPEG", quality=80)
    return data_uri(small.getvalue())


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page or a part of one as HTML; ``{{ part | body }}`` renders a ``PageSection``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(sorted(ROOT.glob("compclip/*/templates"))),
        autoescape=jinja2.select_autoescape(["html.j2", "xml.j2"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def body(section: PageSection) -> Markup:
        return Markup(environment.get_template(section.template).render(section.context))

    indented = partial(json.dumps, indent=2, ensure_ascii=False)
    environment.filters.update(
        percent=percent, data_uri=data_uri, url=quote, body=body, json=indented
    )
    environment.globals["interval"] = interval
    return environment.get_template(template).render(context)


def title_and_description(svg: bytes) -> tuple[str, str]:
    """Return the title and the description with which ``drawing.save`` wrote a figure."""
    root = ElementTree.fromstring(svg)
    return root.findtext(TITLE_ELEMENT, ""), root.findtext(DESCRIPTION_ELEMENT, "")


def show_figures(files: Iterable[Path], *, embed: bool = False) -> list[dict[str, Any]]:
    """Return, for each SVG, its ``name``, ``alternative`` text, size, ``file`` to download, and
    ``source``.

    ``files`` are in folder ``figures`` beside the page; with ``embed``, the page contains them.
    """
    shown = []
    for file in files:
        raw = file.read_bytes()
        title, description = title_and_description(raw)
        # viewBox="x y width height", in points
        view_box = ElementTree.fromstring(raw).get("viewBox", "0 0 1 1").split()
        width = round(PIXELS_IN_POINT * float(view_box[2]))
        height = round(PIXELS_IN_POINT * float(view_box[3]))
        link = f"figures/{quote(file.name)}"
        shown.append(
            {
                "name": file.stem,
                "alternative": f"{title}: {description}" if description else title,
                "file": link,
                "source": data_uri(raw) if embed else link,
                "width": width,
                "height": height,
            }
        )
    return shown


def write_page(page: str, file: Path) -> None:
    write_text(page, file)
    log.info("%s: %.1f MB", file, len(page.encode()) / 1e6)


def outlined(html: str) -> tuple[Markup, list[tuple[str, str]]]:
    """Return a part as a separate page, whose headings of level 3 become level 2 and get ids, and
    ids with headings.
    """
    headings = []
    for number, text in enumerate(re.findall("<h3>(.*?)</h3>", html, re.DOTALL), 1):
        anchor = f"part-{number}"
        # Only the first: two headings may have the same text.
        html = html.replace(f"<h3>{text}</h3>", f'<h2 id="{anchor}">{text}</h2>', 1)
        headings.append((anchor, html_text.unescape(text)))
    return Markup(html), headings


def write_section_page(
    file: Path, dataset: str, section: PageSection, settings: Mapping[str, Any]
) -> None:
    body, headings = outlined(render(section.template, section.context))
    context = {
        "title": f"{section.title} on {dataset}",
        "body": body,
        "headings": headings,
        "settings": settings,
    }
    write_page(render("section_page.html.j2", context), file)
