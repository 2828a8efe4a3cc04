"""A cache of embeddings on disk, as ``core.identity.cache``.

Vectors are stored in batches: a row of the database for each would take several times as long.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compclip.core.identity.cache import KEY_BYTES, Store, keyed_digest


class Block(NamedTuple):
    """Some of the vectors that are asked for: their rows, (m,), and the vectors, (m, d)."""

    rows: list[int]
    vectors: np.ndarray


class VectorCache(Store):
    """``with VectorCache(path) as cache: cache.put(...); cache.get(...)``.

    ``context``: a key of what all vectors of a batch depend on.
    """

    TABLE = (
        "batches (id INTEGER PRIMARY KEY, context BLOB NOT NULL, keys BLOB NOT NULL, vectors BLOB "
        "NOT NULL, digest BLOB NOT NULL)"
    )

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        # by context: the batch of each key, and the last batch whose keys have been read
        self._batches: dict[bytes, dict[bytes, int]] = defaultdict(dict)
        self._last: dict[bytes, int] = {}
        self._whole: set[int] = set()  # batches whose digest has been checked
        with self._errors():
            # Of earlier versions, which stored a row for each vector.
            self.db.execute("DROP TABLE IF EXISTS entries")

    def get(self, context: bytes, keys: Sequence[bytes]) -> list[Block]:
        """Return the vectors of the distinct ``keys`` that are stored and undamaged."""
        with self._errors():
            batch_of = self._find_batches(context)
            wanted: dict[int, dict[bytes, int]] = defaultdict(dict)  # by batch: the row of each key
            for row, key in enumerate(keys):
                if key in batch_of:
                    wanted[batch_of[key]][key] = row
            damaged = 0
            blocks = []
            for batch, row_by_key in wanted.items():
                block = self._read(context, batch, row_by_key)
                if block is None:
                    damaged += len(row_by_key)
                else:
                    blocks.append(block)
        self.warn_of_damaged(damaged)
        return blocks

    def put(self, context: bytes, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Store ``vectors`` (n, d), float32, as one batch: all of them or, if the process dies,
        none.
        """
        names = b"".join(keys)
        content = vectors.tobytes()
        row = (context, names, content, keyed_digest(context, names + content))
        columns = "context, keys, vectors, digest"
        self._insert(f"INSERT INTO batches ({columns}) VALUES (?, ?, ?, ?)", [row])

    def _find_batches(self, context: bytes) -> dict[bytes, int]:
        """Return the batch of each stored key; of several, the last."""
        batch_of = self._batches[context]
        query = "SELECT id, keys FROM batches WHERE context = ? AND id > ? ORDER BY id"
        # Other processes may have stored more since the last call.
        for batch, names in self.db.execute(query, (context, self._last.get(context, 0))):
            self._last[context] = batch
            # A damaged value may be of any type.
            if isinstance(names, bytes):
                batch_of.update(dict.fromkeys(_split(names), batch))
        return batch_of

    def _read(self, context: bytes, batch: int, row_by_key: dict[bytes, int]) -> Block | None:
        """Return the vectors of some keys of a batch; None if it is damaged."""
        query = "SELECT keys, vectors, digest FROM batches WHERE id = ?"
        names, content, digest = self.db.execute(query, (batch,)).fetchone()
        if batch not in self._whole:
            # A damaged value may be of any type.
            are_bytes = isinstance(names, bytes) and isinstance(content, bytes)
            if not are_bytes or digest != keyed_digest(context, names + content):
                return None
            self._whole.add(batch)
        stored = list(_split(names))
        vectors = np.frombuffer(content, np.float32).reshape(len(stored), -1)
        places = [place for place, key in enumerate(stored) if key in row_by_key]
        rows = [row_by_key[stored[place]] for place in places]
        return Block(rows, vectors[places])


def _split(names: bytes) -> Iterator[bytes]:
    """Yield the keys that ``names`` joins."""
    for start in range(0, len(names), KEY_BYTES):
        yield names[start : start + KEY_BYTES]
