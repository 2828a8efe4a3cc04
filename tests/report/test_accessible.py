"""Pages can be read and used by everybody: contrasts of all colors, and axe in a browser in light and dark."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.human.conftest import browser as browser
from tests.report.pages import write_page
from workflow_scripts.core.code import ROOT

STYLE = (ROOT / "workflow_scripts/plot/templates/style.css").read_text()
ON = {"seen": "seen-back", "swapped": "swapped-back", "unseen": "unseen-back"}


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_color_of_text_stands_out(scheme: int) -> None:
    """By WCAG 2.1: 4.5 for text, 3 for frames of what can be clicked."""
    colors = dict(re.findall(r"--([\w-]+): (#\w{6})", STYLE.split(":root {")[1 + scheme].split("}")[0]))
    for name in ("text", "soft", "seen", "swapped", "unseen", "link"):
        for back in filter(None, ("page", "card", ON.get(name))):
            assert contrast(colors[name], colors[back]) >= 4.5, (name, back)
    assert min(contrast(colors["frame"], colors[back]) for back in ("page", "card")) >= 3


def test_no_text_is_smaller_than_13_pixels() -> None:
    """In rem of 16 pixels; sizes in em are of code, whose least size is stated."""
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)rem", STYLE)]
    assert sizes and 16 * min(sizes) >= 13


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, results: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    write_page(results)
    page = browser.new_page(color_scheme=scheme, bypass_csp=True)
    page.goto((results / "report.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text())
    found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})")
    assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []
    page.close()
