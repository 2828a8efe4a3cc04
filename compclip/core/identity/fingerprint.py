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

from compclip.core.artifacts.sealed import seal
from compclip.core.errors import require
from compclip.core.identity.cache import Cache, key
from compclip.core.identity.digests import sha256
from compclip.core.progress import track

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
    for path in (Path(place) for place in places if place is not None):
        # Separates the paths, so that files cannot move from one to the next unnoticed.
        total.update(b"\1")
        if path.is_file():
            total.update(_digests(path, {"": path.stat()}, cache)[""].encode())
        elif path.is_dir():
            for name, content in sorted(_digests(path, _files(path), cache).items()):
                total.update(os.fsencode(name) + f"\0{content}\n".encode())
        else:
            total.update(b"absent")
    return total.hexdigest()[:16]


def check_unchanged(at_start: str, current: str, whose: str) -> None:
    """Raise UserError if the fingerprint of the user's files changed since the run started."""
    fault = "files changed since the run started"
    require(at_start == current, whose, fault, "wait until they are complete and run again")


def _files(folder: Path) -> dict[str, os.stat_result]:
    """Return the status of each file below ``folder``, by its path below it."""
    files = {}
    for subfolder, _, names in os.walk(folder, followlinks=True):
        for path in (os.path.join(subfolder, name) for name in names):
            with suppress(OSError):  # a broken link
                status = os.stat(path)
                if stat.S_ISREG(status.st_mode):
                    files[path.removeprefix(f"{folder}/")] = status
    return files


def _digests(path: Path, files: dict[str, os.stat_result], cache: Path | None) -> dict[str, str]:
    """Return the digest of each file at or below ``path``, from the index if its status is the
    same.
    """
    start = time.time_ns()  # before the files are read
    status_keys = {name: _status_key(path / name, status) for name, status in files.items()}
    with Cache(cache / "files.sqlite") if cache else nullcontext() as index:
        indexed = index.get([*status_keys.values()]) if index else {}
        reread = os.environ.get(REREAD)
        unread = [name for name, status in status_keys.items() if reread or status not in indexed]
        digests = _read_digests(path, unread)
        corrupt = []
        for name, digest in digests.items():
            earlier = indexed.get(status_keys[name])
            if earlier and earlier != digest.encode():
                corrupt.append(name)
        corrupt.sort()
        where = path / corrupt[0] if corrupt else path
        fault = (
            f"{len(corrupt)} of {len(files)} files have other bytes than when they were first read"
        )
        remedy = "restore them from a copy or, if size and times were kept on purpose, touch them"
        require(not corrupt, where, fault, remedy)
        settled = [
            (status_keys[name], digest.encode())
            for name, digest in digests.items()
            if digest != UNREADABLE and _last_change(files[name]) + TICK < start
        ]
        if index and settled:
            index.put(settled)
    for name, status in status_keys.items():
        if status in indexed:
            digests[name] = indexed[status].decode()
    return digests


def _status_key(file: Path, status: os.stat_result) -> bytes:
    """Return the key of a file in the index.

    Copying can restore the modification time, but not the change time.
    """
    name = os.fsencode(os.path.abspath(file))
    return key(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _last_change(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _read_digests(path: Path, names: list[str]) -> dict[str, str]:
    with ThreadPoolExecutor(READERS) as readers:
        contents = readers.map(lambda name: _digest(path / name), names)
        shown = track(contents, len(names), f"files of {path} read")
        return dict(zip(names, shown, strict=True))


def _digest(file: Path) -> str:
    try:
        return sha256(file) or UNREADABLE
    except OSError:  # the step that reads it names the reason
        return UNREADABLE
