"""Files that end with a digest of what comes before it: records, checkpoints, activations.

The digest is part of the file, so that a kill never separates them.
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from compclip.core.artifacts.files import atomic
from compclip.core.log import log

SEAL = 33  # bytes of a line break and the digest
BYTES_PER_READ = 1 << 22


def seal(data: bytes = b"") -> "hashlib.blake2b":
    """Return a hash object updated with ``data``."""
    return hashlib.blake2b(data, digest_size=16)


def ending(digest: "hashlib.blake2b") -> bytes:
    """Return the last bytes of a sealed file: a line break and the digest."""
    return f"\n{digest.hexdigest()}".encode()


def _ending_of(file: BinaryIO, size: int) -> bytes:
    """Return the ending that a file with these next ``size`` bytes must have."""
    digest = seal()
    while size > 0:
        block = file.read(min(size, BYTES_PER_READ))
        if not block:
            break
        digest.update(block)
        size -= len(block)
    return ending(digest)


class _Hashed(io.BufferedWriter):
    """A new file, and the digest of what has been written to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self.digest = seal()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return super().write(data)


@contextmanager
def sealed(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write from its beginning to its end, which is moved to ``path``, with its
    digest, when the block ends.
    """
    with atomic(path) as temporary, _Hashed(temporary) as file:
        yield file
        file.write(ending(file.digest))


def read_sealed(path: Path) -> bytes | None:
    """Return the content of a small sealed file, None if it is damaged."""
    raw = path.read_bytes()
    return raw[:-SEAL] if raw[-SEAL:] == ending(seal(raw[:-SEAL])) else None


def is_whole(path: Path, instead: str) -> bool:
    """Return whether a sealed file exists undamaged; if damaged, log a warning that says what
    happens ``instead``.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if _ending_of(file, path.stat().st_size - SEAL) == file.read():
            return True
    log.warning("%s: damaged; %s", path, instead)
    return False
