"""Tasks with three pictures, in a real browser, at a desk and on a phone: all can be seen and answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.compun.made_up import make_place
from tests.compun.test_people import make_study
from tests.human.test_browser import DESK, PAUSE, PHONE, answer_by_key, downloaded
from workflow_scripts.human.answers import fault
from workflow_scripts.human.tasks import ALL_KINDS, COMPOUND_KINDS
from workflow_scripts.human.write_pages import page_html


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("compounds")
    place = make_place(folder)
    tasks = make_study(place)
    for kind in COMPOUND_KINDS:
        page = tasks[(tasks["kind"] == kind) & (tasks["batch"] == 1)]
        (folder / f"{kind}.html").write_text(page_html(page, place / "human" / "pictures"))
    return folder, tasks


def _open(browser: Any, file: Path, size: dict[str, Any]) -> tuple[Any, list[str]]:
    page, faults = browser.new_context(**size).new_page(), []
    page.clock.install()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(file.resolve().as_uri())
    return page, faults


@pytest.mark.parametrize("kind", list(COMPOUND_KINDS))
def test_by_keyboard(pages: tuple[Path, pd.DataFrame], browser: Any, kind: str) -> None:
    folder, tasks = pages
    own = tasks[(tasks["kind"] == kind) & (tasks["batch"] == 1)].sort_values("place")
    page, faults = _open(browser, folder / f"{kind}.html", DESK)
    page.keyboard.press("Enter")
    assert page.inner_text("#text1") == own["text_1"].iloc[0]
    keys = {"compound": "123", "confusing": "yn"}[kind]
    pressed = answer_by_key(page, len(own), keys)
    records = downloaded(page)
    kinds = dict(zip(tasks["task_id"], tasks["kind"], strict=True))
    assert [record["task_id"] for record in records] == own["task_id"].tolist()
    assert all(fault(record, kinds) is None for record in records)
    meant = {"y": "yes", "n": "no"}
    assert [record["answer"] for record in records] == [meant.get(key, key) for key in pressed]
    assert not faults
    page.context.close()


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("kind", list(COMPOUND_KINDS))
def test_all_is_seen_without_a_scroll(
    pages: tuple[Path, pd.DataFrame], browser: Any, kind: str, size: dict[str, Any]
) -> None:
    page, faults = _open(browser, pages[0] / f"{kind}.html", size)
    page.click("#begin")
    width, height = size["viewport"]["width"], size["viewport"]["height"]
    for _ in range(3):
        page.clock.fast_forward(PAUSE)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        boxes = [item.bounding_box() for item in page.query_selector_all("#task img, .choice")]
        assert len(boxes) == 3 + len(ALL_KINDS[kind].answers)
        assert all(box["y"] + box["height"] <= height and box["width"] >= 120 for box in boxes)
        assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
        page.query_selector_all(".choice")[-1].click()
    assert page.inner_text("#progress").startswith("4 of") and not faults
    page.context.close()
