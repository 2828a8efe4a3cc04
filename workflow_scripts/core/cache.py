"""A key-value store on disk for results that later runs reuse: parses, embeddings, answers of models.

A key covers everything that its value depends on, so that no value is ever outdated, and deleting the file only costs
time. A value whose stored digest differs counts as missing. SQLite lets processes of several hosts share a file, which
LMDB does not, and never unpickles what it reads, as diskcache may; reading is as fast (docs/testing.md).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError

WAIT = 600  # seconds for another process's write
KEYS_PER_QUERY = 500


def key(*parts: str | bytes | int) -> bytes:
    """Return 16 bytes over ``parts``, each with its length, so that no two lists of parts share a text."""
    raw = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    pieces = (piece for part in raw for piece in (len(part).to_bytes(8, "big"), part))
    return hashlib.blake2b(b"".join(pieces), digest_size=16).digest()


def _digest(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, key=key, digest_size=16).digest()


class Cache:
    """``with Cache(path) as cache: cache.put(...); cache.get(...)``; a damaged file is replaced by an empty one."""

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
        # Values have some kilobytes, which smaller pages would split. Only a new file takes this setting.
        db.execute("PRAGMA page_size=16384")
        db.execute("PRAGMA synchronous=NORMAL")
        columns = "key BLOB PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL"
        db.execute(f"CREATE TABLE IF NOT EXISTS entries ({columns})")
        return db

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values that are stored and undamaged, by key."""
        values: dict[bytes, bytes] = {}
        damaged = 0
        with self._errors():
            try:
                for start in range(0, len(keys), KEYS_PER_QUERY):
                    asked = list(keys[start : start + KEYS_PER_QUERY])
                    marks = ",".join("?" * len(asked))
                    query = f"SELECT key, value, digest FROM entries WHERE key IN ({marks})"
                    for name, value, digest in self.db.execute(query, asked):
                        if digest == _digest(name, value):
                            values[name] = value
                        else:
                            damaged += 1
            except sqlite3.DatabaseError as error:
                self._remove(error)
                self.db.close()
                self.db = self._open()
                return {}
        if damaged:
            log.warning("%s: %d damaged values are computed again", self.path, damaged)
        return values

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Store all of ``items`` or, if the process dies, none."""
        with self._errors():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                rows = ((name, value, _digest(name, value)) for name, value in items)
                self.db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", rows)
                self.db.execute("COMMIT")
            except BaseException:
                # If the disk is full, the rollback has been done already.
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def _remove(self, error: sqlite3.DatabaseError) -> None:
        """Remove a damaged file; one that is only locked, full or not writable is not damaged."""
        if isinstance(error, sqlite3.OperationalError):
            raise error
        log.warning("%s: damaged (%s); it starts empty", self.path, error)
        self.path.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise UserError(f"{self.path}: {error}; check free disk space and permissions") from error
