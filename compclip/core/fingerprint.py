"""Fingerprint of the user's files: as a param of a rule, it reruns the rule when their content
changes.

An index in the cache folder has the digest of each file, so only files whose size, times or inode
changed are read again: reading 12,000 photographs takes seconds from memory and minutes over a
network.
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

# If this variable is set, all files are read again and compared with the index: a disk can corrupt
# a file without changing its size and times.
REREAD = "COMPCLIP_REREAD"
# A file may change twice within one tick of the file system's clock, which is at most this long
# (FAT), without a change of its times. Younger files are therefore not indexed.
TICK = 2_000_000_000  # ns
UNREADABLE = "unreadable"
READERS = 8  # files read at once, since files on network file systems take long to open


def fingerprint(*places: str | Path | None, cache: Path | None = None) -> str:
    """Return 16 hex digits of the content of files, and of the names and content of files in
    folders; follows links.

    A path that does not exist counts as absent; None is ignored. Without the folder ``cache`` of
    the index, every file is read.
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


def check_unchanged(before: str, now: str, whose: str) -> None:
    """Raise UserError if the fingerprint of the user's files changed since the run started."""
    require(
        before == now,
        whose,
        "files changed since the run started",
        "wait until they are complete and run again",
    )


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


def _digests(place: Path, files: dict[str, os.stat_result], cache: Path | None) -> dict[str, str]:
    """Return the digest of each file at or below ``place``, from the index if its status is the
    same.
    """
    # Copying can restore the modification time, but not the change time.
    now = time.time_ns()  # before the files are read
    marks = {
        name: key(
            os.fsencode(os.path.abspath(place / name)),
            s.st_size,
            s.st_mtime_ns,
            s.st_ctime_ns,
            s.st_ino,
        )
        for name, s in files.items()
    }
    with Cache(cache / "files.sqlite") if cache else nullcontext() as index:
        known = index.get([*marks.values()]) if index else {}
        unread = [
            name for name, mark in marks.items() if mark not in known or os.environ.get(REREAD)
        ]
        with ThreadPoolExecutor(READERS) as readers:
            contents = readers.map(lambda name: _digest(place / name), unread)
            digests = dict(
                zip(unread, track(contents, len(unread), f"files of {place} read"), strict=True)
            )
        rotten = sorted(
            name
            for name in digests
            if known.get(marks[name], b"") not in (b"", digests[name].encode())
        )
        fault = (
            f"{len(rotten)} of {len(files)} files have other bytes than when they were first read"
        )
        remedy = "restore them from a copy or, if size and times were kept on purpose, touch them"
        require(not rotten, place / rotten[0] if rotten else place, fault, remedy)
        settled = [
            name
            for name, content in digests.items()
            if content != UNREADABLE
            and max(files[name].st_mtime_ns, files[name].st_ctime_ns) + TICK < now
        ]
        if index and settled:
            index.put((marks[name], digests[name].encode()) for name in settled)
    return digests | {name: known[mark].decode() for name, mark in marks.items() if mark in known}


def _digest(file: Path) -> str:
    try:
        return sha256(file) or UNREADABLE
    except OSError:  # the step that reads it names the reason
        return UNREADABLE
