"""Parse each distinct text once, by worker processes, with a cache."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from compclip.core.identity.cache import Cache
from compclip.core.log import log
from compclip.core.processes import map_in_processes
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
            chunks = _slices([texts[key] for key in new], CHUNK)
            for values in map_in_processes(parser.parse, chunks, processes):
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
    # Blank texts have no key, so that neither parser nor cache sees them.
    keys: list[bytes | None] = []
    texts_by_key = {}
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
            for text_key in batch:
                yield None if text_key is None else values[text_key]
