"""A lock on a file that tells who holds it. It is free as soon as its holder ends, even if it is killed."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def locked(path: Path, held: Callable[[str], object], about: str = "") -> Iterator[None]:
    """Hold the lock of ``path``; ``about`` is what others are told about this process.

    If another process holds it, call ``held`` with the holder and, unless that raises, wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, poll_interval=0.5)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = ""
        with suppress(OSError):  # the holder has just removed it
            holder = path.read_text(encoding="utf-8", errors="replace")
        held(holder or "a process that has just started")
        lock.acquire()
    try:
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError):  # a full disk; the lock holds all the same
            path.write_text(f"process {os.getpid()} on {platform.node()}, since {now}{about and f', {about}'}")
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        lock.release()
