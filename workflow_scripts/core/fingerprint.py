"""Fingerprint of the user's files: as a param of a rule, it reruns the rule when they change."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def fingerprint(*places: str | Path | None) -> str:
    """Return 16 hex digits over the content of files, and the names and sizes in folders; not over times or paths.

    A place that does not exist counts as absent; None does not count.
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
    """Yield the parts of each file's path below ``folder``, and its size; as strings, for up to a million files."""
    for place, _, names in os.walk(folder):
        parents = Path(place).relative_to(folder).parts
        for name in names:
            with suppress(OSError):  # a broken link
                status = os.stat(os.path.join(place, name))
                if stat.S_ISREG(status.st_mode):
                    yield (*parents, name), status.st_size
