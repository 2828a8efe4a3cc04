"""Files in the cache that end with a digest of what comes before it: checkpoints, pixels, activations, indexes.

The digest is part of the file, so that a kill never separates them. Folders and files of other programs, which cannot
have such an end, have a record of their digests (``core.digests``).
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from workflow_scripts.core import digests
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic

SEAL = 16  # bytes of the digest
BYTES_PER_READ = 1 << 22


class Sealing(RawIOBase):
    """A file that is written once, from its beginning to its end, and hashed meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.blake2b(digest_size=SEAL)

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
        file.write(sealing.digest.digest())


def is_whole(path: Path, instead: str) -> bool:
    """Return whether a sealed file exists undamaged; the log names a damaged one and what happens ``instead``."""
    if not path.is_file():
        return False
    digest = hashlib.blake2b(digest_size=SEAL)
    left = path.stat().st_size - SEAL
    with path.open("rb", buffering=0) as file:
        while left > 0 and (piece := file.read(min(left, BYTES_PER_READ))):
            digest.update(piece)
            left -= len(piece)
        if file.read() == digest.digest():
            return True
    log.warning("%s: damaged; %s", path, instead)
    return False


def is_recorded(path: Path, instead: str) -> bool:
    """Return whether a file or folder exists as recorded; the log names a damaged one and what happens ``instead``."""
    if not path.exists():
        return False
    try:
        recorded = digests.read_record(path)
        wrong = digests.faults(path, recorded) if recorded else []
    except UserError as error:
        recorded, wrong = None, [str(error)]
    if wrong:
        log.warning("%s: damaged (%s); %s", path, wrong[0], instead)
    return recorded is not None and not wrong
