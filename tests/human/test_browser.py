"""The pages in a real browser, at a desk and on a phone."""

from __future__ import annotations

import csv
import html
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.human.conftest import HOSTILE, Study, make_study
from workflow_scripts.human.answers import FIELDS, collect, fault
from workflow_scripts.human.serve import Server, Store, pages_by_address
from workflow_scripts.human.tasks import KINDS
from workflow_scripts.human.write_site import batch_csv, layout_html

DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
# Milliseconds after which a page takes the next answer: its clock is put on by as much.
PAUSE = 370


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """A page in a context of its own; fails the test where the page had an error or asked anybody for anything."""
    contexts, faults = [], []

    def opened(address: str | Path, size: dict[str, Any] = DESK, context: Any = None) -> Any:
        if context is None:
            context = browser.new_context(**size)
            contexts.append(context)
        page = context.new_page()
        page.clock.install()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
        page.on("request", lambda request: faults.append(request.url) if not own(request.url) else None)
        page.goto(str(address) if "://" in str(address) else Path(address).resolve().as_uri())
        return page

    def own(url: str) -> bool:
        return url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def answer_by_key(page: Any, tasks: int, keys: str = "12") -> list[str]:
    """Press ``keys`` in turn; the keys pressed."""
    pressed = []
    for number in range(tasks):
        page.clock.fast_forward(PAUSE)
        pressed.append(keys[number % len(keys)])
        page.keyboard.press(pressed[-1])
    return pressed


def says(page: Any, where: str, text: str) -> None:
    """Wait until it does."""
    from playwright.sync_api import expect

    expect(page.locator(where)).to_contain_text(text, timeout=20_000)


def downloaded(page: Any) -> list[dict[str, Any]]:
    with page.expect_download() as waiting:
        page.click("#download")
    assert waiting.value.suggested_filename.endswith(".jsonl")
    return [json.loads(line) for line in Path(waiting.value.path()).read_text().splitlines()]


@pytest.mark.parametrize("kind", list(KINDS))
def test_by_keyboard_from_a_file(study: Study, open_page: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    tasks = study.page(kind)
    page = open_page(study.folder / "pages" / f"{kind}_01.html")
    assert page.inner_text("h1") == KINDS[kind].question
    page.keyboard.press("Enter")
    assert page.inner_text("#progress") == f"1 of {len(tasks)}"
    assert page.evaluate("document.images.length && [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    pressed = answer_by_key(page, len(tasks), {"match": "yn1"}.get(kind, "12"))
    assert (
        "Download" in page.inner_text("#kept") and page.inner_text("#progress") == f"{len(tasks)} of {len(tasks)} done"
    )
    records = downloaded(page)
    assert [r["task_id"] for r in records] == tasks["task_id"].tolist()
    assert all(tuple(r) == FIELDS and fault(r, study.kinds) is None for r in records)
    meant = {"y": "yes", "n": "no", "1": "yes"} if kind == "match" else {"1": "1", "2": "2"}
    assert [r["answer"] for r in records] == [meant[key] for key in pressed]
    assert all(0.3 < r["seconds"] < 20 and r["revision"] == 0 for r in records)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    assert len(collect([path], study.kinds)[0]) == len(tasks)


@pytest.mark.parametrize("kind", list(KINDS))
def test_on_a_phone(study: Study, open_page: Callable[..., Any], kind: str) -> None:
    page = open_page(study.folder / "pages" / f"{kind}_01.html", PHONE)
    page.tap("#begin")
    for number in range(3):
        page.clock.fast_forward(PAUSE)
        # Nothing sticks out to the side, and every answer can be reached without a scroll.
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        for button in page.query_selector_all(".choice"):
            box = button.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] + box["height"] <= 844
            assert box["width"] >= 120 and box["height"] >= 44
        for image in page.query_selector_all("#task img"):
            assert image.bounding_box()["width"] >= 200
        page.query_selector_all(".choice")[number % 2].tap()
    assert page.inner_text("#progress").startswith("4 of")


def test_a_double_tap_answers_once(study: Study, open_page: Callable[..., Any]) -> None:
    page = open_page(study.folder / "pages" / "perceptual_01.html", PHONE)
    page.tap("#begin")
    page.clock.fast_forward(PAUSE)
    page.evaluate("const b = document.querySelector('.choice'); b.click(); b.click(); b.click()")
    assert page.inner_text("#progress").startswith("2 of")


def test_reload_goes_on_where_it_was(study: Study, open_page: Callable[..., Any]) -> None:
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
    # What the other answers, this one knows.
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
    one = {"splits": ["test_seen"], "generators": ["honest"], "gold": 0, "repeats": 0, "batch": 500}
    hostile = make_study(run, tmp_path, **one, match={"tasks": 500})
    place = hostile.page("match")["text_1"].tolist().index(HOSTILE)
    page = open_page(tmp_path / "pages" / "match_01.html")
    page.click("#begin")
    answer_by_key(page, place)
    assert page.inner_text("#text1") == HOSTILE and page.title() == KINDS["match"].question


@contextmanager
def serving(study: Study, answers: Path, port: int = 0) -> Iterator[Server]:
    store = Store(answers, study.kinds)
    server = Server("127.0.0.1", port, pages_by_address([study.folder]), store)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        store.close()


def test_two_people_answer_over_a_restart(study: Study, open_page: Callable[..., Any], tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    tasks = study.page("match")
    with serving(study, answers) as server:
        port = server.server_port
        address = f"http://127.0.0.1:{port}/match_01.html"
        anna, phone = open_page(f"{address}?worker=anna"), open_page(address, PHONE)
        assert len(open_page(f"http://127.0.0.1:{port}/").query_selector_all("a")) == 6
        anna.click("#begin")
        phone.tap("#begin")
        for page in (anna, phone):
            answer_by_key(page, 3, "yn")
    # The server is away: both go on, and nothing is lost.
    for page in (anna, phone):
        answer_by_key(page, 2, "n")
        says(page, "#sending", "not sent")
    with serving(study, answers, port):
        for page in (anna, phone):
            answer_by_key(page, len(tasks) - 5, "y")
            says(page, "#kept", "All answers are saved")
    found, counts, problems = collect([answers], study.kinds)
    assert not problems and counts == {"records": 2 * len(tasks)}
    assert set(found.groupby("worker").size()) == {len(tasks)} and "anna" in set(found["worker"])
    meant = ["yes", "no", "yes", "no", "no", *["yes"] * (len(tasks) - 5)]
    assert found[found["worker"] == "anna"].set_index("task_id")["answer"][tasks["task_id"]].tolist() == meant


def test_an_answer_the_server_refuses_is_said(study: Study, open_page: Callable[..., Any], tmp_path: Path) -> None:
    tasks = study.page("match")
    with serving(study, tmp_path / "answers.jsonl") as server:
        page = open_page(f"http://127.0.0.1:{server.server_port}/match_01.html?worker=anna")
        # The same name on another machine has answered already, otherwise.
        server.store.add(
            {"task_id": tasks["task_id"].iloc[0], "worker": "anna", "answer": "no", "seconds": 1, "revision": 0}
        )
        page.click("#begin")
        answer_by_key(page, len(tasks), "y")
        says(page, "#kept", "did not take 1")
        assert len(downloaded(page)) == len(tasks)


def test_on_a_server_of_files_the_download_is_offered(study: Study, open_page: Callable[..., Any]) -> None:
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(study.folder / "pages")))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        page = open_page(f"http://127.0.0.1:{server.server_port}/match_01.html")
        page.click("#begin")
        answer_by_key(page, len(study.page("match")), "y")
        says(page, "#kept", "Download them")
        assert page.inner_text("#sending") == ""
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_sites_layout_shows_its_rows(study: Study, browser: Any, kind: str) -> None:
    """As the site does it: every variable replaced by the row's cell."""
    tasks = study.tasks[study.tasks["kind"] == kind]
    row = next(csv.DictReader(io.StringIO(batch_csv(tasks, "https://pictures.example/x"), newline="")))
    layout = layout_html(kind)
    for name, value in row.items():
        layout = layout.replace(f"${{{name}}}", value)
    assert "${" not in layout
    context = browser.new_context(**PHONE)
    page = context.new_page()
    # The pictures come from the study's folder, the site's own script from nowhere.
    page.route("**/*", lambda route: route.abort())
    page.route("https://pictures.example/x/*", lambda route: route.fulfill(
        path=study.folder / "pictures" / route.request.url.rpartition("/")[2]))  # fmt: skip
    page.set_content(layout)
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert [b.get_attribute("value") for b in page.query_selector_all("input[name=choice]")] == list(
        KINDS[kind].answers
    )
    for name in ("text_1", "text_2"):
        assert name not in row or html.unescape(row[name]) in page.inner_text("body")
    context.close()
