"""A text that changes when files of the user's do: a rule carries it as a param, so that new ones rerun it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def fingerprint(*places: str | Path | None) -> str:
    """16 hex digits over files (their content) and folders (the names and sizes in them); no times, no absolute paths.

    A place that is not there counts as absent, None as nothing.
    """
    digest = hashlib.blake2b(digest_size=8)
    for place in (Path(p) for p in places if p is not None):
        digest.update(b"\1")
        if place.is_file():
            with place.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        elif place.is_dir():
            for parts, size in sorted(_files(place)):
                digest.update(f"{'/'.join(parts)}\0{size}\n".encode())
        else:
            digest.update(b"absent")
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """The parts of each file's path below ``folder``, and its size. Plain strings: there may be a million."""
    for place, _, names in os.walk(folder):
        above = Path(place).relative_to(folder).parts
        for name in names:
            with suppress(OSError):  # a link to nothing
                found = os.stat(os.path.join(place, name))
                if stat.S_ISREG(found.st_mode):
                    yield (*above, name), found.st_size
