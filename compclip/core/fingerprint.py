"""Fingerprint of the user's files: as a param of a rule, it reruns the rule when their content changes.

An index in the cache folder has the digest of each file, so that only files whose size, times or inode changed are read
again: reading 12,000 photographs takes seconds from memory and minutes over a network.
"""

import json
import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.progress import track
from compclip.core.sealed import is_whole, read_sealed, seal, sealed

# A file may change twice in one tick of its file system's clock, which is at most this long (FAT), and keep its times:
# a file that is younger is not indexed.
TICK = 2_000_000_000  # ns
UNREADABLE = "unreadable"
READERS = 8  # files read at once, since those of a network file system take long to open


def fingerprint(*places: str | Path | None, cache: Path | None = None) -> str:
    """Return 16 hex digits over the content of files, and the names and content of those in folders, links followed.

    A place that does not exist counts as absent; None does not count.

    Args:
        cache: folder of the index; None: read every file.
    """
    total = seal()
    for place in (Path(p) for p in places if p is not None):
        total.update(b"\1")
        if place.is_file():
            total.update(_digests(place, {"": place.stat()}, cache)[""].encode())
        elif place.is_dir():
            for name, content in sorted(_digests(place, dict(_files(place)), cache).items()):
                total.update(os.fsencode(name) + f"\0{content}\n".encode())
        else:
            total.update(b"absent")
    return total.hexdigest()[:16]


def check_unchanged(before: str, now: str, whose: str) -> None:
    """Raise UserError if the fingerprint of the user's files changed since the run started."""
    require(before == now, whose, "files changed since the run started", "wait until they are complete and run again")


def _files(
    folder: str | Path, prefix: str = "", above: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path of each file below ``folder``, and its status; ``above`` has the folders that contain it."""
    try:
        status, entries = os.stat(folder), os.scandir(folder)
    except OSError:  # the step that reads it names the reason
        return
    place = status.st_dev, status.st_ino
    with entries:
        # A link to a folder that contains it would have no end.
        for entry in entries if place not in above else ():
            try:
                status = entry.stat()
            except OSError:  # a broken link
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from _files(entry.path, f"{prefix}{entry.name}/", above | {place})
            elif stat.S_ISREG(status.st_mode):
                yield f"{prefix}{entry.name}", status


def _digests(place: Path, files: dict[str, os.stat_result], cache: Path | None) -> dict[str, str]:
    """Return the digest of each file at or below ``place``, from the index if its marks are the same."""
    # Copying can restore the modification time, but not the change time.
    marks = {name: [s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for name, s in files.items()}
    index = cache and cache / "files" / seal(os.fsencode(os.path.abspath(place))).hexdigest()
    known = json.loads(read_sealed(index) or b"{}") if index and is_whole(index, "all files are read again") else {}
    digests = {name: content for name, (content, *seen) in known.items() if seen == marks.get(name)}
    unread = [name for name in files if name not in digests]
    now = time.time_ns()  # before the files are read
    with ThreadPoolExecutor(READERS) as readers:
        contents = readers.map(lambda name: _digest(place / name), unread)
        digests |= zip(unread, track(contents, len(unread), f"files of {place} read") if unread else (), strict=True)
    settled = {
        name: [content, *marks[name]]
        for name, content in digests.items()
        if content != UNREADABLE and max(marks[name][1:3]) + TICK < now
    }
    if index and settled != known:
        with sealed(index) as file:
            file.write(json.dumps(settled).encode())
    return digests


def _digest(file: Path) -> str:
    try:
        return sha256(file) or UNREADABLE
    except OSError:  # the step that reads it names the reason
        return UNREADABLE
