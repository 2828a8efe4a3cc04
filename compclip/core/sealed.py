"""Files that end with a digest of what comes before it: records, checkpoints, pixels, activations, indexes.

The digest is part of the file, so that a kill never separates them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

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


class Sealing(RawIOBase):
    """A file that is written once, from its beginning to its end, and hashed meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, seal()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self.file.write(data)

    def tell(self) -> int:
        return self.file.tell()


@contextmanager
def sealed(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write, which is moved to ``path``, with its digest, when the block ends."""
    with atomic(path) as temporary, temporary.open("wb") as file:
        sealing = Sealing(file)
        yield cast(IO[bytes], sealing)
        file.write(ending(sealing.digest))


def read_sealed(path: Path) -> bytes | None:
    """Return what a small sealed file holds, None if it is damaged."""
    raw = path.read_bytes()
    return raw[:-SEAL] if raw[-SEAL:] == ending(seal(raw[:-SEAL])) else None


def is_whole(path: Path, instead: str) -> bool:
    """Return whether a sealed file exists undamaged; the log names a damaged one and what happens ``instead``."""
    if not path.is_file():
        return False
    digest = seal()
    left = path.stat().st_size - SEAL
    with path.open("rb", buffering=0) as file:
        while left > 0 and (piece := file.read(min(left, BYTES_PER_READ))):
            digest.update(piece)
            left -= len(piece)
        if file.read() == ending(digest):
            return True
    log.warning("%s: damaged; %s", path, instead)
    return False
