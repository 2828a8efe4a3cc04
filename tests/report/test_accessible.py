"""Everybody can read and use the pages: sizes of text, axe (contrasts too) in light and dark, keys
alone.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from compclip.core.artifacts.parquet import write_table
from compclip.core.identity.code import ROOT
from compclip.core.tables import MEASUREMENTS
from tests.project import COMPOSITION, DATASET, Project
from tests.report.pages import write_page

STYLE = (ROOT / "compclip/plot/templates/style.css").read_text()


def test_no_text_is_smaller_than_13_pixels() -> None:
    """In rem of 16 pixels; sizes in em are of code, whose least size is stated."""
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)rem", STYLE)]
    assert sizes and 16 * min(sizes) >= 13


def test_every_image_of_a_page_has_an_alternative_text() -> None:
    """And captions, which may be written from right to left, a direction of their own."""
    folders = [file for file in ROOT.glob("compclip/*/templates/*.j2")]
    images = [image for file in folders for image in re.findall(r"<img [^>]*>", file.read_text())]
    assert len(images) >= 4 and all(re.search(r'alt="[^"]', image) for image in images)
    macros = (ROOT / "compclip/plot/templates/macros.html.j2").read_text()
    assert '<p dir="auto"><span class="tag" dir="ltr">' in macros


@pytest.fixture(scope="module")
def pages(results: Path, first_run: Project) -> dict[str, Path]:
    """A page of each kind."""
    write_page(results)
    return {
        "report": results / "report.html",
        "entries": results / "entries.html",
        "specs": first_run.root / "results" / "specs.html",
        "compun": first_run.root / "results" / "compun.html",
    }


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "entries", "specs", "compun"])
def test_axe_finds_nothing(
    open_page: Callable[..., Any], pages: dict[str, Path], name: str, scheme: str
) -> None:
    """On a phone, which nothing on a page may be wider than."""
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    page = open_page(pages[name], color_scheme=scheme, viewport={"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text())
    found = page.evaluate(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})"
    )
    assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []


@pytest.mark.slow
def test_intervals_fit_on_a_phone(open_page: Callable[..., Any], pages: dict[str, Path]) -> None:
    """Also the widest ones, in tables of generators with any number of columns."""
    page = open_page(pages["report"], viewport={"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.evaluate("""document.querySelectorAll(".by-name td").forEach((cell) => {
      cell.innerHTML = "100<small>[85.5, 106.5]</small>"; })""")
    wider = """[...document.querySelectorAll(".by-name")].filter((table) =>
      table.parentElement.scrollWidth > table.parentElement.clientWidth).length"""
    lines = """Math.max(...[...document.querySelectorAll(".by-name small")].map((interval) => {
      const range = document.createRange();
      range.selectNodeContents(interval);
      return range.getClientRects().length; }))"""
    assert page.evaluate(f"[{wider}, {lines}]") == [0, 1]


@pytest.mark.slow
def test_each_entry_names_its_pair(open_page: Callable[..., Any], pages: dict[str, Path]) -> None:
    page = open_page(pages["entries"])
    page.wait_for_selector(".entry")
    pair = page.locator("[name=pair] option").nth(1).inner_text()
    page.select_option("[name=pair]", pair)
    entries = page.locator(".entry").all_inner_texts()
    assert entries
    assert all(f"Adjective of {pair}" in entry for entry in entries)


# Of what a key can reach, in the order of the page: of radio buttons the one that is on; of what is
# focused, whether it lies in the window, on top, and has a frame.
REACHABLE = """[...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter((e) =>
  e.checkVisibility() && (e.type !== "radio" || e.checked))"""  # noqa: E501
FOCUSED = f"""() => {{
  const e = document.activeElement, framed = e.type === "radio" ? e.nextElementSibling : e;
  const style = getComputedStyle(framed), box = framed.getClientRects()[0];
  const x = Math.max(box.left, 0) + Math.min(box.width, 20) / 2;
  const top = document.elementFromPoint(x, Math.max(box.top, 0) + Math.min(box.height, 20) / 2);
  const visible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && framed.contains(top);
  return [{REACHABLE}.indexOf(e), visible || e.outerHTML.slice(0, 200)];
}}"""  # noqa: E501


def press_tab_through(page: Any) -> None:
    """Check that Tab reaches all of a page in order, and that what has the focus can be seen."""
    count = page.evaluate(f"{REACHABLE}.length")
    visited = []
    for _ in range(count):
        page.keyboard.press("Tab")
        visited.append(tuple(page.evaluate(FOCUSED)))
    assert visited == [(number, True) for number in range(count)]


@pytest.mark.slow
def test_keys_reach_all_of_the_report(
    open_page: Callable[..., Any], results: Path, tmp_path: Path
) -> None:
    place = shutil.copytree(results, tmp_path / "results")
    shutil.copytree(place / DATASET / COMPOSITION, place / DATASET / "shape")
    scores, comparisons = (
        pd.read_parquet(place / "scores.parquet"),
        pd.read_csv(place / "comparisons.csv"),
    )
    write_table(
        pd.concat([scores, scores.assign(composition="shape")]),
        place / "scores.parquet",
        MEASUREMENTS,
    )
    both = pd.concat([comparisons, comparisons.assign(composition="shape")])
    both.to_csv(place / "comparisons.csv", index=False)
    write_page(place)
    for file in [*(place / "figures").glob(f"{DATASET}_{COMPOSITION}_*")]:
        shutil.copy(file, file.with_name(file.name.replace(COMPOSITION, "shape", 1)))
    write_page(place, compositions=[COMPOSITION, "shape"])
    page = open_page(place / "report.html", viewport={"width": 1280, "height": 900})
    press_tab_through(page)
    # From the beginning: the tabs of compositions, by arrows.
    page.reload()
    shown = "[...document.querySelectorAll('.panel')].map((panel) => panel.checkVisibility())"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(shown) == [True, False] * 2
    page.keyboard.press("ArrowRight")
    assert page.evaluate(shown) == [False, True] * 2
    press_on = page.keyboard.press
    press_on("Tab")
    # A link of the contents leads to its section, and a closed part opens.
    press_on("Enter")
    assert page.evaluate("document.querySelector(location.hash) !== null")
    page.locator("details:not([open]) > summary:visible").first.focus()
    press_on("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")
    press_tab_through(open_page(place / "report.html", viewport={"width": 390, "height": 844}))


@pytest.mark.slow
def test_keys_reach_all_of_the_entries(
    open_page: Callable[..., Any], pages: dict[str, Path]
) -> None:
    page = open_page(pages["entries"], viewport={"width": 1280, "height": 900})
    page.wait_for_selector(".entry")
    press_tab_through(page)
    # The end shows more, up to all.
    total = int(page.inner_text("#count").split()[0].replace(",", ""))
    assert page.locator(".entry").count() < total
    page.wait_for_function(
        "(total) => { scrollTo(0, 1e6); return document.querySelectorAll('.entry').length === "
        "total; }",
        arg=total,
    )
    page.reload()
    page.wait_for_selector(".entry")
    counts = [page.inner_text("#count")]
    while page.evaluate("document.activeElement.name") != "hit":
        page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        counts.append(page.inner_text("#count"))
    assert len(set(counts)) == 3 and "hit=0" in page.evaluate("location.hash")
