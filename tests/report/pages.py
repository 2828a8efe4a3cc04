"""Write and read pages."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.scripts import job
from workflow_scripts.report import make_page

# What rules tell of the small run.
RUN = {
    "dataset": DATASET,
    "compositions": [COMPOSITION],
    "shared": True,
    "generators": list(GENERATORS),
    "judges": ["0"],
    "fid": [],
    "reference": "faithful",
    "max_bias": 0.15,
    "controls": list(GENERATORS),
    "anchors": dict.fromkeys(("test_unseen", "test_swapped"), ("faithful", "memorizer"))
    | {"test_seen": ("faithful", "usual")},
    "training_data": {},
}
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


def place_of(results: Path) -> Path:
    return results / DATASET / COMPOSITION


def write_page(results: Path, **more: Any) -> str:
    """Write the page of the small run's results and return it. more: params that differ, or
    ``generate``.
    """
    generate = more.pop(
        "generate", {"generators": [{"name": name, "kind": name} for name in GENERATORS]}
    )
    judge = {"train_on": "half", "model": "</pre><script>"}
    params: dict[str, Any] = (
        RUN
        | {
            "results": results,
            "seed": 0,
            "examples": 12,
            "about": {"faithful": "draws what <b>"},
            "sections": [],
            "source": "table",
            "settings": {"split": {"method": "pairs"}, "judge": judge, "generate": generate},
        }
        | more
    )
    tables = {"scores": results / "scores.parquet", "comparisons": results / "comparisons.csv"}
    tables["by_pair"] = results / "pairs.csv"
    make_page.main(
        job(tables if params["generators"] else {}, {"page": results / "report.html"}, **params)
    )
    return (results / "report.html").read_text(encoding="utf-8")
