"""A key-value store on disk for results that later runs reuse: parses, embeddings, answers of models.

A key covers everything that its value depends on, so that no value is ever outdated, and deleting the file only costs
time. A value whose stored digest differs counts as missing, and a file whose structure is damaged is replaced by an
empty one. SQLite lets processes of several hosts share a file, which LMDB does not, and never unpickles what it reads,
as diskcache may; reading is as fast (docs/testing.md).
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self, TypeVar

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError

WAIT = 600  # seconds for another process's write
KEYS_PER_QUERY = 500
# SQLite's errors that come from the disk or from other processes, not from what the file contains.
_SURROUNDINGS = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL,
}  # fmt: skip

T = TypeVar("T")
Part = str | bytes | int


def _add(digest: hashlib.blake2b, parts: Iterable[Part]) -> hashlib.blake2b:
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest


def key(*parts: Part) -> bytes:
    """Return 16 bytes over ``parts``, each with its length, so that no two lists of parts share a text."""
    return _add(hashlib.blake2b(digest_size=16), parts).digest()


def keys(common: Sequence[Part], last: Iterable[Part]) -> list[bytes]:
    """Return ``key(*common, part)`` for each part of ``last``, hashing what they have in common once."""
    begun = _add(hashlib.blake2b(digest_size=16), common)
    return [_add(begun.copy(), [part]).digest() for part in last]


def _digest(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, key=key, digest_size=16).digest()


def _is_whole(name: Any, value: Any, digest: Any) -> bool:
    """Return whether a row is as it was stored; a damaged one may hold values of any type."""
    return isinstance(name, bytes) and isinstance(value, bytes) and digest == _digest(name, value)


def damaged(path: Path) -> int:
    """Return how many values of a cache's file are damaged, at least 1 if its structure is; changes nothing."""
    count = 0
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=WAIT)) as db:
            db.text_factory = bytes
            for row in db.execute("SELECT key, value, digest FROM entries"):
                count += not _is_whole(*row)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        count += 1
    return count


class Cache:
    """``with Cache(path) as cache: cache.put(...); cache.get(...)``; a damaged file is replaced by an empty one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.db: sqlite3.Connection | None = None
        self._try(lambda db: None)

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
        # A damaged type makes a blob a text, which may not be UTF-8.
        db.text_factory = bytes
        # Values have some kilobytes, which smaller pages would split. Only a new file takes this setting.
        db.execute("PRAGMA page_size=16384")
        db.execute("PRAGMA synchronous=NORMAL")
        columns = "key BLOB PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL"
        db.execute(f"CREATE TABLE IF NOT EXISTS entries ({columns})")
        return db

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self.db is not None:
            self.db.close()
            self.db = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values that are stored and undamaged, by key."""
        values: dict[bytes, bytes] = {}
        damaged = 0

        def read(db: sqlite3.Connection) -> None:
            nonlocal damaged
            for start in range(0, len(keys), KEYS_PER_QUERY):
                asked = list(keys[start : start + KEYS_PER_QUERY])
                marks = ",".join("?" * len(asked))
                query = f"SELECT key, value, digest FROM entries WHERE key IN ({marks})"
                for name, value, digest in db.execute(query, asked):
                    if _is_whole(name, value, digest):
                        values[name] = value
                    else:
                        damaged += 1

        self._try(read)
        if damaged:
            log.warning("%s: %d damaged values are computed again", self.path, damaged)
        return values

    def put(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Store all of ``items`` or, if the process dies, none."""
        rows = [(name, value, _digest(name, value)) for name, value in items]

        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            try:
                db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", rows)
                db.execute("COMMIT")
            except BaseException:
                # If the disk is full, the rollback has been done already.
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

        self._try(write)

    def _try(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of ``action``, on an empty file if this one is damaged."""
        try:
            try:
                self.db = self.db or self._open()
                return action(self.db)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                self._remove_damaged(error)
                self.db = self._open()
                return action(self.db)
        except sqlite3.DatabaseError as error:
            raise UserError(f"{self.path}: {error}; check free disk space and permissions") from error

    def _remove_damaged(self, error: sqlite3.DatabaseError | UnicodeDecodeError) -> None:
        """Close and remove a damaged file; raise ``error`` if it has another cause."""
        code = getattr(error, "sqlite_errorcode", 0)
        if isinstance(error, UnicodeDecodeError):  # of SQLite's message, which contains damaged bytes
            code = sqlite3.SQLITE_CORRUPT
        read_only = code & 0xFF == sqlite3.SQLITE_READONLY
        if not code or code & 0xFF in _SURROUNDINGS or (read_only and not os.access(self.path, os.W_OK)):
            raise error
        self._close()
        # Another process may have removed it first.
        if code != sqlite3.SQLITE_READONLY_DBMOVED:
            log.warning("%s: damaged (%s); it starts empty", self.path, error)
            self.path.unlink(missing_ok=True)
