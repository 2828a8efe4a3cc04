"""Show the progress of long work: a bar on a terminal, a line every few seconds in a log."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Self, SupportsFloat, TypeVar

from compclip.core.log import UNDER_RUN, log

T = TypeVar("T")
LOGGED_EVERY = 15  # seconds
NOTED_EVERY = 1  # seconds between two notes of a bar


class Progress:
    """Counts finished work: ``with Progress(total, "captions") as progress: progress.add(64)``."""

    def __init__(self, total: int | None, unit: str) -> None:
        self.total = total
        self.unit = unit
        self.done = 0
        self.started = self.logged = time.monotonic()
        self.bar = None
        if sys.stderr.isatty() and UNDER_RUN not in os.environ:
            with suppress(ImportError):  # an extra
                from tqdm import tqdm

                self.bar = tqdm(total=total, unit=f" {unit}", leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def add(self, n: int = 1, loss: SupportsFloat | None = None) -> None:
        """Count ``n`` more; ``loss`` is shown behind the count.

        It is read only when it is shown, because to read a tensor waits for a GPU.
        """
        self.done += n
        if self.bar is not None:
            self.bar.update(n)
        now = time.monotonic()
        if now - self.logged < (LOGGED_EVERY if self.bar is None else NOTED_EVERY):
            return
        self.logged = now
        note = "" if loss is None else f"loss {float(loss):.3f}"
        rate = self.done / (now - self.started)
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
        elif self.total:
            left = (self.total - self.done) / rate if rate else float("inf")
            text = "%d of %d %s (%.0f per second, about %.0f s left) %s"
            log.info(text, self.done, self.total, self.unit, rate, left, note)
        else:
            log.info("%d %s (%.0f per second) %s", self.done, self.unit, rate, note)


def track(items: Iterable[T], total: int | None, unit: str) -> Iterator[T]:
    """Yield ``items`` and count each."""
    with Progress(total, unit) as progress:
        for item in items:
            yield item
            progress.add()
