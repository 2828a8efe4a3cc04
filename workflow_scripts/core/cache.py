"""A key-value store on disk that survives between runs: parses, embeddings.

Keys hold everything that a value depends on, so that nothing in it is ever out of date, and deleting the
file loses only time. Two processes may use it at once, of two hosts too where their file system knows locks: there
is no write-ahead log, for which processes must share memory.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError

# Seconds that a process waits for another's write.
WAIT = 600


def key(*parts: str | bytes | int) -> bytes:
    """16 bytes over ``parts``, each with its length, so that no two lists of parts share a text."""
    raw = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return hashlib.blake2b(
        b"".join(piece for part in raw for piece in (len(part).to_bytes(8, "big"), part)), digest_size=16
    ).digest()


class Cache:
    """``with Cache(path) as cache: cache.put(...); cache.get(...)``. A damaged file is made anew."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            try:
                self.db = self._open()
            except sqlite3.DatabaseError as error:
                self._remove(error)
                self.db = self._open()

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
        # A new file's alone: the values are of some kilobytes, which the usual pages break up.
        db.execute("PRAGMA page_size=16384")
        begun = time.monotonic()
        while True:
            try:
                db.execute("PRAGMA journal_mode=DELETE")
                break
            except sqlite3.OperationalError as error:
                # A file with such a log, of an older version, in use: SQLite does not wait here by itself.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() - begun > WAIT:
                    raise
                time.sleep(0.02)
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        return db

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values that are there, by key."""
        found: dict[bytes, bytes] = {}
        with self._errors():
            try:
                for start in range(0, len(keys), 500):
                    part = list(keys[start : start + 500])
                    marks = ",".join("?" * len(part))
                    found.update(self.db.execute(f"SELECT key, value FROM cache WHERE key IN ({marks})", part))
            except sqlite3.DatabaseError as error:
                self._remove(error)
                self.db.close()
                self.db = self._open()
                return {}
        return found

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Store all of ``items`` or, if the process dies, none."""
        with self._errors():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                # In the order in which they lie in the file.
                self.db.executemany("INSERT OR REPLACE INTO cache VALUES (?, ?)", sorted(items))
                self.db.execute("COMMIT")
            except BaseException:
                # Where the disk is full the rollback has been done already.
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def _remove(self, error: sqlite3.DatabaseError) -> None:
        """Remove a damaged file; one that is merely locked, full or not writable is not damaged."""
        if isinstance(error, sqlite3.OperationalError):
            raise error
        log.warning("%s: damaged (%s), made anew", self.path, error)
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise UserError(f"{self.path}: {error}: see that the disk has room and the file can be written") from error
