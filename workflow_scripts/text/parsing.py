"""Parse many texts: each distinct one once, by worker processes, kept in a cache.

What a parser makes of a text, and what that depends on, is its own affair: its keys must hold all of it, so that
neither the batch nor the process nor the order matters.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from threading import Thread
from typing import Protocol

from workflow_scripts.core.cache import Cache
from workflow_scripts.core.errors import UserError

CHUNK = 256  # texts that a worker takes at once


class Parser(Protocol):
    """``keys`` names each text's place in the cache, ``parse`` gives what stands there."""

    def keys(self, texts: Iterable[str]) -> list[bytes]: ...
    def parse(self, texts: Sequence[str]) -> list[bytes]: ...


_parser: Parser | None = None


def _start(parser: Parser) -> None:
    global _parser
    _parser = parser
    # Else a worker whose parent was killed waits for work for ever.
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _work(texts: list[str]) -> list[bytes]:
    assert _parser is not None
    return _parser.parse(texts)


def parse_all(
    parser: Parser, items: Iterable[tuple[bytes, str]], processes: int
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Parse texts given with their keys; yields keys with what they gave, a chunk at a time, in any order.

    At most two chunks for each process are held at once, so that ``items`` may be endless.
    """
    source = iter(items)
    if processes == 1:
        while part := list(islice(source, CHUNK)):
            yield list(zip([k for k, _ in part], parser.parse([t for _, t in part]), strict=True))
        return
    # A forked worker shares the loaded pipeline; elsewhere than on Linux forking is not safe.
    method = "fork" if sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(parser,)) as pool:
        running: dict[Future[list[bytes]], list[bytes]] = {}
        try:
            while True:
                while len(running) < 2 * processes and (part := list(islice(source, CHUNK))):
                    running[pool.submit(_work, [t for _, t in part])] = [k for k, _ in part]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield list(zip(running.pop(future), future.result(), strict=True))
        except BrokenProcessPool as error:
            raise UserError(
                f"--processes {processes}: one of them died, most likely for want of memory: run again, it resumes"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def fill(
    parser: Parser,
    cache: Cache,
    batches: Iterable[list[str]],
    processes: int,
    seen: Callable[[int], object] = lambda n: None,
) -> int:
    """Parse the distinct texts of ``batches`` that the cache does not hold, into it; how many there were.

    Blank texts are left out. ``seen`` is called with the size of each batch when its turn is over.
    """
    flying: set[bytes] = set()

    def new() -> Iterator[tuple[bytes, str]]:
        for texts in batches:
            keyed = {k: text for k, text in zip(parser.keys(texts), texts, strict=True) if text.strip()}
            held = cache.get(list(keyed))
            # Claimed all at once: what is parsed while this batch is handed out must not be claimed again.
            mine = [k for k in keyed if k not in held and k not in flying]
            flying.update(mine)
            for k in mine:
                yield k, keyed[k]
            seen(len(texts))

    parsed = 0
    for part in parse_all(parser, new(), processes):
        cache.put(part)
        flying.difference_update(k for k, _ in part)
        parsed += len(part)
    return parsed
