"""Processes at the same time, and a full disk."""

import multiprocessing
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


def run_at_once(work: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
    """Call ``work`` in a process for each tuple of arguments; all must succeed."""
    context = multiprocessing.get_context("forkserver")
    processes = [context.Process(target=work, args=given) for given in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


@contextmanager
def small_files_only(size: int = 4096) -> Iterator[None]:
    """No file of this process may grow past ``size`` bytes: the disk is full. Meanwhile pytest
    cannot log either.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
