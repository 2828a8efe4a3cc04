"""The server: what is confirmed is on disk, once, whatever happens to the server or comes over the wire."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.human.conftest import Study
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.human.answers import FIELDS
from workflow_scripts.human.serve import LARGEST, Server, Store, addresses, pages_by_address

JSON = {"Content-Type": "application/json"}


class Client:
    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] = JSON
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def send(self, record: Any) -> tuple[int, dict[str, Any]]:
        status, body = self.ask("POST", "/answers", json.dumps(record).encode())
        return status, json.loads(body)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


@pytest.fixture
def client(study: Study, answers: Path) -> Iterator[Client]:
    store = Store(answers, study.kinds)
    server = Server("127.0.0.1", 0, pages_by_address([study.folder]), store)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Client(server.server_port)
    server.shutdown()
    server.server_close()
    store.close()


@pytest.fixture
def good(study: Study) -> dict[str, Any]:
    task = study.page("match")["task_id"].iloc[0]
    return {"task_id": task, "worker": "w-1", "answer": "yes", "seconds": 2.5, "revision": 0}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_answer_is_stored_once(client: Client, good: dict[str, Any], answers: Path) -> None:
    assert client.send(good) == (200, {"stored": True})
    assert client.send(good) == (200, {"stored": False})
    assert client.send(good | {"seconds": 9}) == (200, {"stored": False})
    assert client.send(good | {"answer": "no", "revision": 1}) == (200, {"stored": True})
    assert client.send(good) == (200, {"stored": False})
    assert client.send(good | {"worker": "w-2"}) == (200, {"stored": True})
    assert [(r["worker"], r["answer"], r["revision"]) for r in lines(answers)] == [
        ("w-1", "yes", 0), ("w-1", "no", 1), ("w-2", "yes", 0)
    ]  # fmt: skip
    assert all(tuple(r) == FIELDS for r in lines(answers))


def test_a_contradiction_is_refused(client: Client, good: dict[str, Any], answers: Path) -> None:
    client.send(good)
    status, reply = client.send(good | {"answer": "no"})
    assert status == 409 and "before" in reply["error"]
    assert len(lines(answers)) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task_id": "0" * 16}, "task_id"),
        ({"answer": "1"}, "answer"),
        ({"worker": "../../x"}, "worker"),
        ({"seconds": -1}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"revision": "0"}, "revision"),
        ({"more": 1}, "fields"),
    ],
)
def test_bad_answers_are_refused(
    client: Client, good: dict[str, Any], answers: Path, change: dict, reason: str
) -> None:
    status, reply = client.send(good | change)
    assert status == 400 and reason in reply["error"]
    assert answers.read_bytes() == b""


def test_what_is_no_answer_is_refused(client: Client, answers: Path) -> None:
    assert client.ask("POST", "/answers", b"{")[0] == 400
    assert client.ask("POST", "/answers", b"[" * 4000)[0] == 400
    assert client.ask("POST", "/answers", b"\xff\xfe")[0] == 400
    assert client.ask("POST", "/answers", b"x" * (LARGEST + 1))[0] == 413
    # A form of another site can send this, but no JSON.
    assert client.ask("POST", "/answers", b"{}", {"Content-Type": "text/plain"})[0] == 415
    assert client.ask("POST", "/elsewhere", b"{}")[0] == 404
    assert answers.read_bytes() == b""


def test_pages_and_nothing_else_are_served(client: Client, study: Study) -> None:
    status, body = client.ask("GET", "/")
    assert status == 200 and body == (study.folder / "pages" / "index.html").read_bytes()
    status, body = client.ask("GET", "/match_01.html?worker=anna")
    assert status == 200 and body == (study.folder / "pages" / "match_01.html").read_bytes()
    assert client.ask("HEAD", "/match_01.html") == (200, b"")
    for path in ("/../tasks.parquet", "/%2e%2e/tasks.parquet", "/tasks.parquet", "//etc/passwd", "/pages/", "/x.html"):
        assert client.ask("GET", path)[0] == 404, path


def test_two_workers_at_once(client: Client, study: Study, answers: Path) -> None:
    tasks = study.page("match")["task_id"].tolist()
    failed = []

    def work(worker: str) -> None:
        for task in tasks * 2:
            record = {"task_id": task, "worker": worker, "answer": "no", "seconds": 1, "revision": 0}
            if client.send(record)[0] != 200:
                failed.append(record)

    threads = [threading.Thread(target=work, args=(f"w-{i // 2}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    found = [(r["worker"], r["task_id"]) for r in lines(answers)]
    assert len(found) == len(set(found)) == 2 * len(tasks)


def test_a_restart_knows_what_was_stored(study: Study, good: dict[str, Any], answers: Path) -> None:
    store = Store(answers, study.kinds)
    assert store.add(good) and store.add(good | {"answer": "no", "revision": 1})
    store.close()
    store = Store(answers, study.kinds)
    assert not store.add(good) and not store.add(good | {"answer": "no", "revision": 1})
    store.close()
    assert len(lines(answers)) == 2


def test_a_line_cut_short_harms_no_other(study: Study, good: dict[str, Any], answers: Path) -> None:
    answers.write_text(json.dumps(good) + "\n" + json.dumps(good | {"worker": "w-2"})[:40])
    store = Store(answers, study.kinds)
    assert store.other == 1 and len(store.last) == 1
    assert store.add(good | {"worker": "w-2"})
    store.close()
    content = answers.read_text().splitlines()
    assert len(content) == 3 and json.loads(content[2])["worker"] == "w-2"


def test_a_full_disk_confirms_nothing(
    client: Client, good: dict[str, Any], answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def half(file: int, raw: bytes) -> int:
        return write(file, raw[:10]) if raw.startswith(b'{"task_id"') else write(file, raw)

    monkeypatch.setattr(os, "write", half)
    assert client.send(good)[0] == 507
    assert answers.read_bytes() == b""
    monkeypatch.undo()
    assert client.send(good) == (200, {"stored": True})
    assert lines(answers) == [good]


def test_one_server_writes_a_file(study: Study, answers: Path) -> None:
    store = Store(answers, study.kinds)
    with pytest.raises(UserError, match="another server"):
        Store(answers, study.kinds)
    store.close()


def test_addresses_of_several_studies(study: Study, tmp_path: Path) -> None:
    assert pages_by_address([study.folder])["/"] == study.folder / "pages" / "index.html"
    other = tmp_path / "shape" / "human"
    (other / "pages").mkdir(parents=True)
    (other / "pages" / "index.html").write_text("x")
    found = pages_by_address([study.folder, other])
    assert found["/shape/"] == other / "pages" / "index.html" and "/color/match_01.html" in found
    with pytest.raises(UserError, match="same address"):
        pages_by_address([study.folder, study.folder])
    with pytest.raises(UserError, match="no pages"):
        pages_by_address([tmp_path])


def test_addresses_for_a_phone() -> None:
    assert addresses("127.0.0.1", 8000) == ["http://127.0.0.1:8000"]
    assert addresses("0.0.0.0", 8000)[0] == "http://localhost:8000"


def _start(study: Study, answers: Path) -> tuple[subprocess.Popen[str], int]:
    command = [
        sys.executable, "-m", "workflow_scripts.human.serve", str(study.folder), "--answers", str(answers),
        "--host", "127.0.0.1", "--port", "0",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("open http://127.0.0.1:"):
            return process, int(line.split(":")[-1].rstrip("/\n"))
    raise AssertionError("the server did not say where it is")


def test_killed_and_started_again(study: Study, good: dict[str, Any], answers: Path) -> None:
    process, port = _start(study, answers)
    assert Client(port).send(good) == (200, {"stored": True})
    process.kill()
    process.communicate(timeout=20)
    process, port = _start(study, answers)
    assert Client(port).send(good) == (200, {"stored": False})
    assert Client(port).send(good | {"worker": "w-2"}) == (200, {"stored": True})
    process.send_signal(signal.SIGINT)
    assert "2 answers of 2 people" in process.communicate(timeout=20)[1]
    assert process.returncode == 0
    assert len(lines(answers)) == 2
