"""Write and read pages."""

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from tests.made_up import COMPOSITION, DATASET, GENERATORS
from workflow_scripts.core.layout import Layout
from workflow_scripts.divergence.results import FIGURES
from workflow_scripts.plot.drawing import empty, save, style
from workflow_scripts.plot.labels import SPLIT_NAMES, WORD_KINDS
from workflow_scripts.report import make_page
from workflow_scripts.report.steps import MakePage

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


def draw_figures(results: Path) -> None:
    """Write stand-ins of all figures of the page, with titles as the steps that draw give them."""
    titles = {
        name: name.capitalize()
        for name in ("scores", "gaps", "drops", "comparisons", "pairs", "by_judge", "health", "loss", "swapped_pairs")
    }
    titles["division"] = "Divergence while the division grew"
    titles |= {name: f"Parts of {name}" for name in FIGURES}
    for split, name in SPLIT_NAMES.items():
        for words in WORD_KINDS.values():
            titles[words] = f"{words.capitalize()} in each split"
            titles[f"{split}_{words}"] = f"{words.capitalize()} in {name}"
    layout = Layout(results, DATASET, COMPOSITION)
    with style():
        for name, title in titles.items():
            save(empty(name), layout.figure(name), f"{title} ({DATASET}, {COMPOSITION})", "a 50.0 %, b 50.0 %")


def write_page(
    results: Path,
    examples: int = 12,
    fid: Sequence[str] = (),
    method: str = "pairs",
    sections: Sequence[str] = (),
    generators: Sequence[str] = GENERATORS,
    configured: Sequence[str] = GENERATORS,
    compositions: Sequence[str] = (COMPOSITION,),
) -> str:
    """Write the page of made-up results and return it."""
    if not (results / "figures" / "tiny_color_division.svg").is_file():
        draw_figures(results)
    page = results / "report.html"
    step = MakePage(
        results=results, dataset=DATASET, compositions=list(compositions), generators=list(generators),
        oracle=["faithful"], fid=list(fid), judges=["0"] if generators else [], reference="faithful",
        sections=list(sections), examples=examples, seed=0, split={"method": method},
        judge={"train_on": "half", "model": "</pre><script>"}, page=page,
        about={"faithful": "draws what <b>"},
        generate={"generators": [{"name": name, "kind": name} for name in configured]},
    )  # fmt: skip
    make_page.main(step)
    return page.read_text(encoding="utf-8")
