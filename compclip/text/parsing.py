"""Parse each distinct text once, by worker processes, with a cache."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from typing import Protocol

from compclip.core.cache import Cache
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.progress import Progress

LOOKUP_BATCH = 4096  # texts per look-up in the cache
CHUNK = 256  # texts per task of a worker
STORED = 2.0  # seconds between two writes of values: keys are random, so each write changes many pages


class Parser(Protocol):
    """``keys`` returns the cache keys of texts, which cover everything that the values of ``parse`` depend on."""

    def keys(self, texts: Iterable[str]) -> list[bytes]: ...
    def parse(self, texts: Sequence[str]) -> list[bytes]: ...


_parser: Parser | None = None


def _start(parser: Parser) -> None:
    global _parser
    _parser = parser
    # Otherwise a worker whose parent was killed would wait forever.
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
    """Parse texts, given with their keys; yield keys and values, a chunk at a time, in any order.

    At most two chunks per process are in memory, so ``items`` may be infinite.
    """
    source = iter(items)
    if processes == 1:
        while chunk := list(islice(source, CHUNK)):
            yield list(zip([k for k, _ in chunk], parser.parse([t for _, t in chunk]), strict=True))
        return
    # A forked worker shares the loaded pipeline; forking is safe only on Linux.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(parser,)) as pool:
        running: dict[Future[list[bytes]], list[bytes]] = {}
        try:
            while True:
                while len(running) < 2 * processes and (chunk := list(islice(source, CHUNK))):
                    running[pool.submit(_work, [t for _, t in chunk])] = [k for k, _ in chunk]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield list(zip(running.pop(future), future.result(), strict=True))
        except BrokenProcessPool as error:
            raise UserError(
                f"--processes {processes}: a worker was killed, probably out of memory; run again to resume"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def fill_cache(
    parser: Parser,
    cache: Cache,
    batches: Iterable[list[str]],
    processes: int,
    seen: Callable[[int], object] = lambda n: None,
) -> int:
    """Parse the distinct texts of ``batches`` that are neither blank nor cached; return their number.

    ``seen`` is called with the size of each batch that was submitted.
    """
    pending: set[bytes] = set()

    def new() -> Iterator[tuple[bytes, str]]:
        for texts in batches:
            keyed = {k: text for k, text in zip(parser.keys(texts), texts, strict=True) if text.strip()}
            cached = cache.get(list(keyed))
            # in one step: a text that is parsed while this batch is submitted must not be submitted again
            new_keys = [k for k in keyed if k not in cached and k not in pending]
            pending.update(new_keys)
            for k in new_keys:
                yield k, keyed[k]
            seen(len(texts))

    parsed, held, stored = 0, list[tuple[bytes, bytes]](), time.monotonic()

    def store() -> None:
        nonlocal parsed, stored
        cache.put(held)
        pending.difference_update(k for k, _ in held)
        parsed += len(held)
        held.clear()
        stored = time.monotonic()

    try:
        for chunk in parse_all(parser, new(), processes):
            held += chunk
            if time.monotonic() - stored > STORED:
                store()
    finally:
        store()
    return parsed


def values(parser: Parser, cache: Cache, texts: Sequence[str]) -> list[bytes | None]:
    """Return the cached value of each text, None for a blank one; call ``fill_cache`` first."""
    keys = [k if text.strip() else None for k, text in zip(parser.keys(texts), texts, strict=True)]
    known = cache.get([k for k in dict.fromkeys(keys) if k is not None])
    return [None if k is None else known[k] for k in keys]


def parse_texts(
    parser: Parser, texts: Sequence[str], processes: int, cache: str | Path, unit: str
) -> list[bytes | None]:
    """Return the value of each text, None for a blank one; each distinct text is parsed once.

    Args:
        processes: processes that parse at once; the result is the same.
        cache: SQLite file of values, from which a killed call resumes.
        unit: what the texts are called in the log.
    """
    batches = [list(texts[start : start + LOOKUP_BATCH]) for start in range(0, len(texts), LOOKUP_BATCH)]
    with Cache(cache) as stored:
        with Progress(len(texts), unit) as progress:
            parsed = fill_cache(parser, stored, batches, processes, progress.add)
        log.info("%d distinct %s parsed; the others were cached", parsed, unit)
        return [value for batch in batches for value in values(parser, stored, batch)]
