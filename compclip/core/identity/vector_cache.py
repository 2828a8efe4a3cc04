"""A cache of embeddings on disk.

Vectors are stored in batches: a value of the cache for each would take several times as long.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from compclip.core.identity.cache import KEY_BYTES, Cache, KeyPart, key

# Some of the vectors that are asked for: their rows, (m,), and the vectors, (m, d).
Block = tuple[np.ndarray, np.ndarray]


class VectorCache(Cache):
    """Two values of the cache for each batch: the keys of its vectors and, by the key of the first
    value, the vectors.

    ``settings``: what all vectors depend on; the file may have others, too.
    """

    def __init__(self, path: str | Path, *settings: KeyPart) -> None:
        super().__init__(path)
        self._prefix = key(*settings)
        self._keys_by_batch: dict[bytes, list[bytes]] = {}
        self._batch_by_key: dict[bytes, bytes] = {}

    def blocks(self, keys: Sequence[bytes]) -> Iterator[Block]:
        """Yield the vectors of the distinct ``keys`` that are stored and undamaged, by batch."""
        self._find_batches()
        row_by_key = {key: row for row, key in enumerate(keys)}
        batches = dict.fromkeys(map(self._batch_by_key.get, keys))
        for batch in filter(None, batches):
            rows = np.array([row_by_key.get(key, -1) for key in self._keys_by_batch[batch]])
            for content in self.get([key(batch)]).values():
                vectors = np.frombuffer(content, np.float32).reshape(len(rows), -1)
                yield rows[rows >= 0], vectors[rows >= 0]

    def add(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Store ``vectors`` (n, d), float32, as a batch: all or, if the process dies, none."""
        names = b"".join(keys)
        batch = self._prefix + key(names)
        self.put([(batch, names), (key(batch), vectors.tobytes())])

    def _find_batches(self) -> None:
        """Find the batches that this or other processes have stored since the last call."""
        query = "SELECT key FROM entries WHERE key BETWEEN ? AND ?"
        with self._errors():
            last = self._prefix + b"\xff" * KEY_BYTES
            batches = {batch for (batch,) in self.db.execute(query, (self._prefix, last))}
        new = batches - self._keys_by_batch.keys()
        for batch, names in self.get(sorted(new)).items():
            stored = np.frombuffer(names, f"V{KEY_BYTES}").tolist()
            self._keys_by_batch[batch] = stored
            self._batch_by_key.update(dict.fromkeys(stored, batch))
