"""Fingerprint of the user's files: as a param of a rule, it reruns the rule when their content changes.

An index in the cache folder has the digest of each file, so that only files whose size, times or inode changed are read
again: reading 12,000 photographs takes seconds from memory and minutes over a network.
"""

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

from compclip.core.cache import Cache, key
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.progress import track
from compclip.core.sealed import seal

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
            for name, content in sorted(_digests(place, _files(place), cache).items()):
                total.update(os.fsencode(name) + f"\0{content}\n".encode())
        else:
            total.update(b"absent")
    return total.hexdigest()[:16]


def unnoticed_changes(place: Path, cache: Path) -> tuple[int, list[Path]]:
    """Read files whose digests the index has; return how many, and those that changed, but not their size and times."""
    files = {"": place.stat()} if place.is_file() else _files(place)
    marks = _marks(place, files)
    with Cache(cache / "files.sqlite") as index:
        known = index.get([*marks.values()])
    indexed = [name for name, mark in marks.items() if mark in known]
    now = _read(place, indexed)
    return len(indexed), [place / name for name in indexed if now[name] != known[marks[name]].decode()]


def check_unchanged(before: str, now: str, whose: str) -> None:
    """Raise UserError if the fingerprint of the user's files changed since the run started."""
    require(before == now, whose, "files changed since the run started", "wait until they are complete and run again")


def _files(folder: Path) -> dict[str, os.stat_result]:
    """Return the status of each file below ``folder``, by its path below it."""
    files = {}
    for place, _, names in os.walk(folder, followlinks=True):
        for path in (os.path.join(place, name) for name in names):
            with suppress(OSError):  # a broken link
                status = os.stat(path)
                if stat.S_ISREG(status.st_mode):
                    files[path.removeprefix(f"{folder}/")] = status
    return files


def _marks(place: Path, files: dict[str, os.stat_result]) -> dict[str, bytes]:
    """Return the key in the index of each file at or below ``place``: its path and status."""
    # Copying can restore the modification time, but not the change time.
    return {
        name: key(os.fsencode(os.path.abspath(place / name)), s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino)
        for name, s in files.items()
    }


def _digests(place: Path, files: dict[str, os.stat_result], cache: Path | None) -> dict[str, str]:
    """Return the digest of each file at or below ``place``, from the index if its status is the same."""
    marks = _marks(place, files)
    with Cache(cache / "files.sqlite") if cache else nullcontext() as index:
        known = index.get([*marks.values()]) if index else {}
        unread = [name for name, mark in marks.items() if mark not in known]
        now = time.time_ns()  # before the files are read
        digests = _read(place, unread)
        settled = [
            name
            for name, content in digests.items()
            if content != UNREADABLE and max(files[name].st_mtime_ns, files[name].st_ctime_ns) + TICK < now
        ]
        if index and settled:
            index.put((marks[name], digests[name].encode()) for name in settled)
    return digests | {name: known[mark].decode() for name, mark in marks.items() if mark in known}


def _read(place: Path, names: list[str]) -> dict[str, str]:
    """Return the digest of each file by its path below ``place``; every byte is read."""
    with ThreadPoolExecutor(READERS) as readers:
        contents = readers.map(lambda name: _digest(place / name), names)
        return dict(zip(names, track(contents, len(names), f"files of {place} read"), strict=True))


def _digest(file: Path) -> str:
    try:
        return sha256(file) or UNREADABLE
    except OSError:  # the step that reads it names the reason
        return UNREADABLE
