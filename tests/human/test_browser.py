"""The pages in a real browser, at a desk and on a phone."""

import csv
import html
import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.compun.made_up import make_place
from tests.compun.test_people import make_study as make_compound_study
from tests.human.conftest import HOSTILE, Study, make_study
from tests.loopback import serving
from workflow_scripts.human.answers import FIELDS, collect, fault
from workflow_scripts.human.config import Notice
from workflow_scripts.human.tasks import ALL_KINDS, KINDS
from workflow_scripts.human.write_pages import page_html
from workflow_scripts.human.write_site import batch_csv, layout_html

pytestmark = pytest.mark.slow

DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
PAUSE = 370  # milliseconds after which a page takes the next answer; its clock is advanced by them
KEYS = {"perceptual": "12", "match": "yn1", "caption": "12", "compound": "123", "confusing": "yn"}


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page in its own context; the test fails if the page has an error or requests anything."""
    contexts, faults = [], []

    def opened(address: str | Path, size: dict[str, Any] = DESK, context: Any = None) -> Any:
        if context is None:
            context = browser.new_context(**size, permissions=["clipboard-read", "clipboard-write"])
            contexts.append(context)
        page = context.new_page()
        page.clock.install()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
        url = address if isinstance(address, str) else address.resolve().as_uri()
        expected = (url, "data:", "blob:")
        page.on("request", lambda sent: None if sent.url.startswith(expected) else faults.append(sent.url))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture(scope="module")
def pages(study: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A folder with the first page of every kind, ``<kind>.html``, and all tasks."""
    folder = tmp_path_factory.mktemp("pages")
    place = make_place(folder)
    compounds = make_compound_study(place)
    for kind in ALL_KINDS:
        tasks, pictures = (
            (study.tasks, study.folder / "pictures") if kind in KINDS else (compounds, place / "human" / "pictures")
        )
        page = tasks[(tasks["kind"] == kind) & (tasks["batch"] == 1)]
        (folder / f"{kind}.html").write_text(page_html(page, pictures, Notice()))
    return folder, pd.concat([study.tasks, compounds])


def answer_by_key(page: Any, tasks: int, keys: str = "12") -> list[str]:
    """Press ``keys`` in turn; return the keys pressed."""
    pressed = [keys[number % len(keys)] for number in range(tasks)]
    for key in pressed:
        page.clock.fast_forward(PAUSE)
        page.keyboard.press(key)
    return pressed


def downloaded(page: Any) -> list[dict[str, Any]]:
    with page.expect_download() as waiting:
        page.click("#download")
    assert waiting.value.suggested_filename.endswith(".jsonl")
    return [json.loads(line) for line in Path(waiting.value.path()).read_text().splitlines()]


@pytest.mark.parametrize("kind", list(ALL_KINDS))
def test_by_keyboard_from_a_file(
    pages: tuple[Path, pd.DataFrame], open_page: Callable[..., Any], kind: str, tmp_path: Path
) -> None:
    folder, tasks = pages
    kinds = dict(zip(tasks["task_id"], tasks["kind"], strict=True))
    tasks = tasks[(tasks["kind"] == kind) & (tasks["batch"] == 1)].sort_values("place")
    page = open_page(folder / f"{kind}.html")
    assert page.inner_text("h1") == ALL_KINDS[kind].question
    page.keyboard.press("Enter")
    assert page.inner_text("#progress") == f"1 of {len(tasks)}"
    assert page.evaluate("document.images.length && [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    if ALL_KINDS[kind].texts:
        assert page.inner_text("#text1") == tasks["text_1"].iloc[0]
    pressed = answer_by_key(page, len(tasks), KEYS[kind])
    assert page.inner_text("#progress") == f"{len(tasks)} of {len(tasks)} done" and page.is_visible("#thanks")
    records = downloaded(page)
    assert [record["task_id"] for record in records] == tasks["task_id"].tolist()
    assert all(tuple(record) == FIELDS and fault(record, kinds) is None for record in records)
    meant = {"y": "yes", "n": "no"} | ({"1": "yes"} if kind == "match" else {})
    assert [record["answer"] for record in records] == [meant.get(key, key) for key in pressed]
    assert all(0.3 < record["seconds"] < 20 and record["revision"] == 0 for record in records)
    page.click("#copy")
    (tmp_path / "a.jsonl").write_text(page.evaluate("navigator.clipboard.readText()"))
    answers, counts, _ = collect([tmp_path / "a.jsonl"], kinds)
    assert len(answers) == len(tasks) and counts == {"records": len(tasks)}


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("kind", list(ALL_KINDS))
def test_everything_is_visible_without_scrolling(
    pages: tuple[Path, pd.DataFrame], open_page: Callable[..., Any], kind: str, size: dict[str, Any]
) -> None:
    page = open_page(pages[0] / f"{kind}.html", size)
    page.click("#begin")
    width, height = size["viewport"]["width"], size["viewport"]["height"]
    for number in range(3):
        page.clock.fast_forward(PAUSE)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        images, buttons = page.query_selector_all("#task img"), page.query_selector_all(".choice")
        assert len(images) == ALL_KINDS[kind].pictures and len(buttons) == len(ALL_KINDS[kind].answers)
        for box in (item.bounding_box() for item in [*images, *buttons]):
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] + box["height"] <= height
            assert box["width"] >= 120 and box["height"] >= 44
        buttons[number % 2].click()
    assert page.inner_text("#progress").startswith("4 of")


def test_a_double_tap_answers_once(study: Study, open_page: Callable[..., Any]) -> None:
    page = open_page(study.folder / "pages" / "perceptual_01.html", PHONE)
    page.tap("#begin")
    page.clock.fast_forward(PAUSE)
    page.evaluate("const b = document.querySelector('.choice'); b.click(); b.click(); b.click()")
    assert page.inner_text("#progress").startswith("2 of")


def test_a_reload_resumes(study: Study, open_page: Callable[..., Any]) -> None:
    page = open_page(study.folder / "pages" / "match_01.html")
    page.click("#begin")
    answer_by_key(page, 4, "yn")
    page.reload()
    assert page.inner_text("#progress").startswith("5 of")
    answer_by_key(page, 1, "y")
    # Another tab of the same browser is the same person.
    other = open_page(study.folder / "pages" / "match_01.html", context=page.context)
    assert other.inner_text("#progress").startswith("6 of")
    records = downloaded(other)
    assert [r["answer"] for r in records] == ["yes", "no", "yes", "no", "yes"]
    assert len({r["worker"] for r in records}) == 1
    # The tabs share their answers.
    answer_by_key(other, 1, "n")
    answer_by_key(page, 3, "y")
    assert [r["answer"] for r in downloaded(page)[4:]] == ["yes", "yes", "yes", "yes"]
    assert [r["revision"] for r in downloaded(page)] == [0, 0, 0, 0, 0, 1, 0, 0]


def test_going_back_changes_an_answer(study: Study, open_page: Callable[..., Any]) -> None:
    page = open_page(study.folder / "pages" / "caption_01.html")
    page.click("#begin")
    answer_by_key(page, 2, "11")
    page.keyboard.press("Backspace")
    assert page.inner_text("#progress").startswith("2 of")
    assert page.get_attribute(".choice[data-answer='1']", "aria-pressed") == "true"
    page.click("#back")
    answer_by_key(page, 2, "21")
    records = downloaded(page)
    assert [(r["answer"], r["revision"]) for r in records] == [("2", 1), ("1", 0)]


def test_a_held_key_answers_once(study: Study, open_page: Callable[..., Any]) -> None:
    page = open_page(study.folder / "pages" / "caption_01.html")
    page.click("#begin")
    page.clock.fast_forward(PAUSE)
    for _ in range(4):
        page.keyboard.down("1")
        page.clock.fast_forward(PAUSE)
    page.keyboard.up("1")
    assert page.inner_text("#progress").startswith("2 of")


def test_without_storage_it_warns_and_works(study: Study, browser: Any) -> None:
    context = browser.new_context(**DESK)
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }})")
    page = context.new_page()
    page.clock.install()
    page.goto((study.folder / "pages" / "match_01.html").as_uri())
    assert page.is_visible("#forgetful")
    page.click("#begin")
    answer_by_key(page, 2, "yn")
    assert len(downloaded(page)) == 2
    context.close()


def test_hostile_captions_are_shown_not_run(run: Path, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    only = {"splits": ["test_seen"], "gold": 0, "repeats": 0, "batch": 500, "match": {"tasks": 500}}
    hostile = make_study(run, tmp_path, generators=("honest",), **only)
    place = hostile.page("match")["text_1"].tolist().index(HOSTILE)
    page = open_page(hostile.write_pages(tmp_path / "pages") / "match_01.html")
    page.click("#begin")
    answer_by_key(page, place)
    assert page.inner_text("#text1") == HOSTILE and page.title() == KINDS["match"].question


def test_nobody_begins_without_consent(study: Study, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    notice = {"consent": "We store your answers.\nYou get $5.", "withdrawal": "Write to us."}
    page = open_page(study.write_pages(tmp_path, **notice, contact="me@example.org") / "match_01.html")
    for text in ("You get $5.", "Write to us.", "Contact: me@example.org"):
        assert text in page.inner_text("#intro")
    page.keyboard.press("Enter")
    assert page.is_disabled("#begin") and page.is_visible("#intro")
    page.check("#agree")
    page.click("#begin")
    answer_by_key(page, len(study.page("match")), "y")
    assert "Write to us." in page.inner_text("#end") and "me@example.org" in page.inner_text("#end")


def test_on_a_web_server_the_answers_stay_in_the_browser(study: Study, open_page: Callable[..., Any]) -> None:
    requests = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            requests.append(self.requestline)

    with serving(partial(Quiet, directory=str(study.folder / "pages"))) as address:
        page = open_page(f"{address}/match_01.html?worker=anna")
        page.click("#begin")
        answer_by_key(page, len(study.page("match")), "y")
        assert page.is_visible("#others") and {record["worker"] for record in downloaded(page)} == {"anna"}
        assert len(requests) == 1


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_layout_of_the_site_shows_its_rows(study: Study, browser: Any, kind: str) -> None:
    """The site replaces each variable with the row's cell."""
    tasks = study.tasks[study.tasks["kind"] == kind]
    row = next(csv.DictReader(io.StringIO(batch_csv(tasks, "https://pictures.example/x"), newline="")))
    layout = layout_html(kind, Notice())
    for name, value in row.items():
        layout = layout.replace(f"${{{name}}}", value)
    assert "${" not in layout
    context = browser.new_context(**PHONE)
    page = context.new_page()
    # The pictures come from the study's folder; the site's own script is not loaded.
    page.route("**/*", lambda route: route.abort())
    page.route("https://pictures.example/x/*", lambda route: route.fulfill(
        path=study.folder / "pictures" / route.request.url.rpartition("/")[2]))  # fmt: skip
    page.set_content(layout)
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    values = [button.get_attribute("value") for button in page.query_selector_all("input[name=choice]")]
    assert values == list(KINDS[kind].answers)
    for name in ("text_1", "text_2"):
        assert name not in row or html.unescape(row[name]) in page.inner_text("body")
    context.close()
