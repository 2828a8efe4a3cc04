"""Write and read pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from workflow_scripts.core import tables
from workflow_scripts.divergence import draw_divergence
from workflow_scripts.report import draw_scores, make_page
from workflow_scripts.split import draw_splits

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Tags, attributes and words of a page; fails where tags are not nested properly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def by_class(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]


def write_page(
    results: Path, examples: int = 12, fid: Sequence[str] = (), method: str = "pairs", sections: Sequence[str] = ()
) -> str:
    # Of each step that draws.
    if not all((results / "figures" / f"tiny_color_{name}.svg").is_file() for name in ("nouns", "loss", "division")):
        given = argparse.Namespace(results=results, dataset="tiny", composition="color", dominant=1, ratio=1.25, seed=0)
        draw_splits.main(given)
        draw_scores.main(given)
        given.definitions, given.division = tables.DEFINITIONS, [results / "tiny" / "color" / "division.json"]
        draw_divergence.main(given)
    make_page.main(
        argparse.Namespace(
            results=results,
            dataset="tiny",
            compositions=["color"],
            generators=["photographs", "faithful", "memorizer"],
            oracle=["faithful"],
            fid=fid,
            method=method,
            sections=sections,
            examples=examples,
            settings='{"judge": {"train_on": "half", "model": "</pre><script>"}}',
            seed=0,
        )
    )
    return (results / "report.html").read_text(encoding="utf-8")
