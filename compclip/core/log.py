"""The logger of the library; who uses the library decides where its lines go."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("compclip")
# Set by ``make run``, which shows progress, the error of a step and results itself.
UNDER_RUN = "COMPCLIP_RUN"


@contextmanager
def quiet() -> Iterator[None]:
    """Drop the library's lines, of work whose result may not be used."""
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)
