"""A lock on a file that says who holds it. It is free again as soon as the holder is dead, however it died."""

from __future__ import annotations

import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Seconds between two looks at a lock that somebody else holds.
PAUSE = 0.5


class Held(Exception):
    """Somebody else holds the lock; the message says who."""


@contextmanager
def held(path: Path, about: str = "", wait: Callable[[str], object] | None = None) -> Iterator[int]:
    """Hold the lock of ``path``; yields its file descriptor. A child that inherits it holds the lock too.

    ``about`` stands behind this process's id, host and time. Where somebody else holds it raises Held or, with
    ``wait``, tells it who and waits. On a file system that knows no locks none is held. The file is removed at the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    told = None
    while True:
        try:
            fd = _open(path)
            break
        except Held as holder:
            if wait is None:
                raise
            if str(holder) != told:
                told = str(holder)
                wait(told)
            time.sleep(PAUSE)
    try:
        tell(fd, os.getpid(), about)
        yield fd
    finally:
        # Still held: nobody else can have it open as its own.
        path.unlink(missing_ok=True)
        os.close(fd)


def tell(fd: int, pid: int, about: str = "") -> None:
    """Write who holds the lock."""
    text = f"process {pid} on {platform.node()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
    with suppress(OSError):  # of a full disk; the lock holds all the same
        os.ftruncate(fd, 0)
        os.pwrite(fd, (f"{text}, {about}" if about else text).encode(), 0)


def _open(path: Path) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(fd, 1000, 0).decode(errors="replace")
            os.close(fd)
            raise Held(holder or "a process that has just begun") from error
        except OSError:
            return fd
        # The last holder may have removed the file in between.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), path.stat()):
                return fd
        os.close(fd)
