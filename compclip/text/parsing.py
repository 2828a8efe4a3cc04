"""Parse each distinct text once, by worker processes, with a cache."""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from typing import Protocol, TypeVar

from compclip.core.errors import UserError
from compclip.core.identity.cache import Cache
from compclip.core.log import log
from compclip.core.progress import Progress

T = TypeVar("T")
LOOKUP_BATCH = 4096  # texts per look-up in the cache
CHUNK = 256  # texts per task of a worker
# Seconds between two writes of values: keys are random, so each write changes many pages.
STORED = 2.0


class Parser(Protocol):
    """``keys`` returns the cache keys of texts, which cover everything that the values of ``parse``
    depend on.
    """

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


def _work(texts: Sequence[str]) -> list[bytes]:
    assert _parser is not None
    return _parser.parse(texts)


def _parse_all(parser: Parser, texts: Sequence[str], processes: int) -> Iterator[list[bytes]]:
    """Yield the values of texts in their order, a chunk at a time."""
    chunks = _slices(texts, CHUNK)
    if processes == 1:
        yield from map(parser.parse, chunks)
        return
    # A forked worker shares the loaded pipeline; forking is safe only on Linux.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(parser,)) as pool:
        try:
            yield from pool.map(_work, chunks)
        except BrokenProcessPool as error:
            raise UserError(
                f"--processes {processes}: a worker was killed, probably out of memory; run again "
                "to resume"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _slices(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _fill(
    parser: Parser, cache: Cache, texts: Mapping[bytes, str], processes: int, unit: str
) -> None:
    """Parse the texts whose keys are not cached."""
    new: list[bytes] = []
    for keys in _slices([*texts], LOOKUP_BATCH):
        cached = cache.get(keys)
        new += [key for key in keys if key not in cached]
    remaining_keys = iter(new)
    parsed: list[tuple[bytes, bytes]] = []
    last_write = time.monotonic()
    try:
        with Progress(len(new), unit) as progress:
            for values in _parse_all(parser, [texts[key] for key in new], processes):
                parsed += zip(islice(remaining_keys, len(values)), values, strict=True)
                progress.add(len(values))
                if time.monotonic() - last_write > STORED:
                    cache.put(parsed)
                    parsed = []
                    last_write = time.monotonic()
    finally:
        # Also after Ctrl-C, so that a killed call resumes.
        cache.put(parsed)
    log.info("%d distinct %s parsed; the others were cached", len(new), unit)


def parse_texts(
    parser: Parser, texts: Sequence[str], processes: int, cache: str | Path, unit: str
) -> Iterator[bytes | None]:
    """Yield the value of each text, None for a blank one; each distinct text is parsed once.

    Args:
        processes: processes that parse at once; the result is the same.
        cache: SQLite file of values, from which a killed call resumes.
        unit: what the texts are called in the log.
    """
    keys: list[bytes | None] = []
    texts_by_key: dict[bytes, str] = {}
    for key, text in zip(parser.keys(texts), texts, strict=True):
        if text.strip():
            keys.append(key)
            texts_by_key[key] = text
        else:
            keys.append(None)
    with Cache(cache) as stored:
        _fill(parser, stored, texts_by_key, processes, unit)
        for batch in _slices(keys, LOOKUP_BATCH):
            distinct = dict.fromkeys(key for key in batch if key)
            values = stored.get([*distinct])
            yield from (None if key is None else values[key] for key in batch)
