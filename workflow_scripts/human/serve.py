"""Serve the pages and collect the answers: each is appended to a file as one JSON line, on disk before it is confirmed.

The server can be stopped, or killed, and started again: it knows what the file holds, and pages send again what was
not confirmed. The same answer sent twice stands in the file once; a changed answer is a line of its own with a higher
revision. It knows no passwords and is meant for a network of people one trusts.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import filelock

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.human.answers import FIELDS, fault
from workflow_scripts.human.tasks import read_tasks

# Bytes of an answer; one takes 150.
LARGEST = 4096


class Refused(Exception):
    """An answer that is not stored: the HTTP status and why."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Store:
    """The answers' file. One process at a time may hold it.

    ``kinds``: the kind of each task_id. Lines that are no answer to these tasks are left as they are.
    """

    def __init__(self, path: Path, kinds: Mapping[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.kinds = path, kinds
        self.guard = threading.Lock()
        self.alone = filelock.FileLock(f"{path}.lock")
        try:
            self.alone.acquire(timeout=0)
        except filelock.Timeout as error:
            raise UserError(f"{path}: another server writes to it: stop that one, or name another file") from error
        self.last: dict[tuple[str, str], tuple[int, str]] = {}
        self.other = 0
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._read()

    def _read(self) -> None:
        content = self.path.read_bytes()
        for line in content.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if fault(record, self.kinds) is None:
                name = (record["worker"], record["task_id"])
                if record["revision"] >= self.last.get(name, (-1, ""))[0]:
                    self.last[name] = (record["revision"], record["answer"])
            else:
                self.other += 1
        if content and not content.endswith(b"\n"):
            # A machine that stopped while it wrote: what is there stays, by itself.
            os.write(self.file, b"\n")
            os.fsync(self.file)

    def add(self, record: Any) -> bool:
        """Store an answer, on disk when this returns; False where it stands in the file already. Raises Refused."""
        reason = fault(record, self.kinds)
        if reason:
            raise Refused(HTTPStatus.BAD_REQUEST, reason)
        name = (record["worker"], record["task_id"])
        with self.guard:
            revision, answer = self.last.get(name, (-1, ""))
            if record["revision"] < revision or (record["revision"] == revision and record["answer"] == answer):
                return False
            if record["revision"] == revision:
                raise Refused(HTTPStatus.CONFLICT, "another answer under this name was there before")
            self._append(json.dumps({field: record[field] for field in FIELDS}, ensure_ascii=False) + "\n")
            self.last[name] = (record["revision"], record["answer"])
        return True

    def _append(self, line: str) -> None:
        size = os.fstat(self.file).st_size
        try:
            raw = line.encode()
            if os.write(self.file, raw) < len(raw):
                raise OSError("no room")
            os.fsync(self.file)
        except OSError as error:
            os.ftruncate(self.file, size)
            log.error("error: %s: not written (%s): make room; pages send again", self.path, error)
            raise Refused(HTTPStatus.INSUFFICIENT_STORAGE, "not stored, try again") from error

    def close(self) -> None:
        os.close(self.file)
        self.alone.release()


class Handler(BaseHTTPRequestHandler):
    """GET a page by its name; POST an answer to ``answers``."""

    protocol_version = "HTTP/1.1"
    server: Server
    # Seconds that a connection may be silent.
    timeout = 60

    def _reply(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, status: HTTPStatus, value: Any) -> None:
        self._reply(status, json.dumps(value).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        # What follows in the connection may be the rest of a body that was not read.
        self.close_connection = True
        self._json(status, {"error": reason})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        page = self.server.pages.get(path)
        if page is None:
            self._refuse(HTTPStatus.NOT_FOUND, "no such page")
        else:
            self._reply(HTTPStatus.OK, page.read_bytes(), "text/html; charset=utf-8")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if self.path.rpartition("/")[2] != "answers":
            return self._refuse(HTTPStatus.NOT_FOUND, "answers go to answers")
        # A form of another site cannot send this type.
        if self.headers.get_content_type() != "application/json":
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "an answer is application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "how long is it?")
        if int(length) > LARGEST:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an answer has at most {LARGEST} bytes")
        try:
            record = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self._refuse(HTTPStatus.BAD_REQUEST, "not JSON")
        try:
            self._json(HTTPStatus.OK, {"stored": self.server.store.add(record)})
        except Refused as refused:
            self._refuse(refused.status, str(refused))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("%s " + format, self.address_string(), *args)


class Server(ThreadingHTTPServer):
    """``pages``: files by the path of their address. Port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, host: str, port: int, pages: Mapping[str, Path], store: Store) -> None:
        self.pages, self.store = pages, store
        super().__init__((host, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A phone that left the network in the middle of a request.
        log.debug("%s", client_address, exc_info=True)


def pages_by_address(studies: Sequence[Path]) -> dict[str, Path]:
    """``/match_01.html`` and ``/`` for one study; for several, below the folder of each: ``/color/match_01.html``."""
    pages: dict[str, Path] = {}
    for study in studies:
        files = sorted((study / "pages").glob("*.html"))
        if not files:
            raise UserError(f"{study}: no pages: make them first (write_pages)")
        start = f"/{study.resolve().parent.name}/" if len(studies) > 1 else "/"
        if start in pages:
            raise UserError(f"{study}: another study has the same address {start}: serve them one after the other")
        pages |= {start + file.name: file for file in files} | {start: study / "pages" / "index.html"}
    return pages


def network_address() -> str | None:
    """This machine's address in its network; None where it has none. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # An address kept for documentation: only the route to it is looked up.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


def addresses(host: str, port: int) -> list[str]:
    """Where the pages are to be found: here, and from a phone in the same network."""
    if host not in ("", "0.0.0.0"):
        return [f"http://{host}:{port}"]
    near = network_address()
    return [f"http://localhost:{port}"] + ([f"http://{near}:{port}"] if near else [])


def main(options: argparse.Namespace) -> None:
    pages = pages_by_address(options.studies)
    kinds: dict[str, str] = {}
    for study in options.studies:
        tasks = read_tasks(study / "tasks.parquet")
        kinds |= dict(zip(tasks["task_id"], tasks["kind"], strict=True))
    store = Store(options.answers, kinds)
    try:
        try:
            server = Server(options.host, options.port, pages, store)
        except OSError as error:
            raise UserError(f"port {options.port}: {error.strerror}: take another with --port") from error
        log.info("%s: %d answers of %d people", options.answers, len(store.last), len({w for w, _ in store.last}))
        if store.other:
            log.warning("warning: %s: %d lines are no answer to these tasks", options.answers, store.other)
        starts = [path for path in pages if path.endswith("/")]
        for address in addresses(options.host, server.server_port):
            log.info("open %s", " ".join(address + start for start in starts))
        log.info("a phone in the same network takes the last address; add ?worker=NAME to a page to name a person")
        log.info("stop with Ctrl-C")
        with server:
            server.serve_forever()
    except KeyboardInterrupt:
        log.info("%s: %d answers of %d people", options.answers, len(store.last), len({w for w, _ in store.last}))
    finally:
        store.close()


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument(
        "studies", nargs="+", type=Path, metavar="FOLDER", help="results/<dataset>/<composition>/human, one or more"
    )
    result.add_argument("--answers", type=Path, required=True, metavar="FILE", help="where answers go: a .jsonl file")
    result.add_argument("--host", default="0.0.0.0", help="127.0.0.1 for this machine alone (default: %(default)s)")
    result.add_argument("--port", type=int, default=8000, help="0 for any that is free (default: %(default)s)")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
