"""Files that end with a digest of what comes before it: records, checkpoints, activations.

The digest is part of the file, so that a kill never separates them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from compclip.core.log import log
from compclip.io import atomic

SEAL = 33  # bytes of a line break and the digest
BYTES_PER_READ = 1 << 22


def seal(data: bytes = b"") -> "hashlib.blake2b":
    """Return the digest of ``data``, to be updated."""
    return hashlib.blake2b(data, digest_size=16)


def ending(digest: "hashlib.blake2b") -> bytes:
    """Return how a file with a digest ends."""
    return f"\n{digest.hexdigest()}".encode()


def _ending_of(file: BinaryIO, size: int) -> bytes:
    """Return how a file with these next ``size`` bytes must end."""
    digest = seal()
    while size > 0 and (piece := file.read(min(size, BYTES_PER_READ))):
        digest.update(piece)
        size -= len(piece)
    return ending(digest)


@contextmanager
def sealed(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which is moved to ``path``, with its digest, when the block ends."""
    with atomic(path) as temporary:
        with temporary.open("wb") as file:
            yield file
        with temporary.open("rb+") as written:
            written.write(_ending_of(written, temporary.stat().st_size))


def read_sealed(path: Path) -> bytes | None:
    """Return what a small sealed file holds, None if it is damaged."""
    raw = path.read_bytes()
    return raw[:-SEAL] if raw[-SEAL:] == ending(seal(raw[:-SEAL])) else None


def is_whole(path: Path, instead: str) -> bool:
    """Return whether a sealed file exists undamaged; the log names a damaged one and what happens ``instead``."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if _ending_of(file, path.stat().st_size - SEAL) == file.read():
            return True
    log.warning("%s: damaged; %s", path, instead)
    return False
