"""Call a function for many items in several processes."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from threading import Thread
from typing import Any, TypeVar

from compclip.core.errors import UserError

T = TypeVar("T")
Result = TypeVar("Result")

_function: Callable[[Any], Any] | None = None  # of a worker process


def _start(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    # Otherwise a worker whose parent was killed would wait forever.
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(item: Any) -> Any:
    assert _function is not None
    return _function(item)


def map_in_processes(
    function: Callable[[T], Result], items: Iterable[T], processes: int, items_per_task: int = 1
) -> Iterator[Result]:
    """Yield the results of ``function`` for all items, in their order.

    Args:
        function: called in forked processes, which share what is loaded; on other systems than
            Linux, which do not fork safely, it must be picklable.
        processes: with 1, all is computed in this process.

    Raises:
        UserError: a process was killed.
    """
    if processes == 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(function,)) as pool:
        try:
            yield from pool.map(_call, items, chunksize=items_per_task)
        except BrokenProcessPool as error:
            fault = "one was killed, probably out of memory; run again to resume"
            raise UserError(f"{processes} processes: {fault}") from error
        finally:
            pool.shutdown(cancel_futures=True)
