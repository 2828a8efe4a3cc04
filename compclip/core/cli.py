"""Run a step from the command line: logging in one place, errors as one line."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

from compclip.core import digests
from compclip.core.errors import UserError, one_line
from compclip.core.log import UNDER_RUN, log
from compclip.core.step import PACKAGE, Step, parse

INTERRUPTED = "interrupted; run again to resume"
# On a terminal: go to the start of the line and clear it, where a progress bar may be.
CLEAR = "\r\x1b[K"


def start_logging(log_file: Path | None = None) -> None:
    """Log plain lines to standard error and, with times, to a file."""
    # On a full disk, the log's own failure must not hide the step's.
    logging.raiseExceptions = False
    log.setLevel(logging.DEBUG)
    log.propagate = False
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()
    screen = logging.StreamHandler()
    clear = CLEAR if sys.stderr.isatty() else ""
    hint = ""
    if UNDER_RUN in os.environ:
        screen.addFilter(lambda record: record.levelno >= logging.WARNING and not hasattr(record, "ends"))
        hint = f" (log: {log_file})" if log_file else ""
    screen.setLevel(logging.INFO)
    screen.setFormatter(logging.Formatter(f"{clear}%(message)s{hint}"))
    log.addHandler(screen)
    if log_file is not None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        # Of several processes that train together, the first starts the log and the others append their errors.
        if os.environ.get("RANK", "0") == "0":
            log_file.write_bytes(b"")
        file = logging.FileHandler(log_file, mode="a", encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(file)


def run_checked(main: Callable[[Any], None], step: Step, program: str) -> None:
    """Run ``main`` between the check of its inputs and the record of its outputs."""
    # Of several processes that train together, the first checks and records.
    first = os.environ.get("RANK", "0") == "0"
    inputs = digests.check(step.paths("input")) if first else {}
    main(step)
    if first:
        for path in step.paths("output"):
            digests.record(path, program.removeprefix(f"{PACKAGE}."), step.code, inputs)


@contextmanager
def one_line_errors(log_file: Path | None = None) -> Iterator[None]:
    """Turn an error inside the block into one line, its traceback into lines of the log, and exit with 1."""
    try:
        yield
    except KeyboardInterrupt:
        log.error(INTERRUPTED, extra={"ends": True})
        sys.exit(130)
    except Exception as error:
        # Only the file gets the traceback: its handler alone takes DEBUG.
        log.debug("traceback", exc_info=True)
        hint = "" if isinstance(error, UserError) or log_file is None else f" (traceback: {log_file})"
        log.error("error: %s%s", one_line(error), hint, extra={"ends": True})
        sys.exit(1)


def run(main: Callable[[Any], None]) -> None:
    """Run ``main``, whose argument is annotated with the step's class, with the arguments of the command line."""
    declared = next(iter(get_type_hints(main).values()))
    specification = sys.modules["__main__"].__spec__
    program = specification.name if specification else sys.argv[0]
    start_logging()
    with one_line_errors():
        step = parse(declared, sys.argv[1:], program)
        start_logging(step.log)
        with one_line_errors(step.log):
            run_checked(main, step, program)


def show(text: str) -> None:
    """Print a result, unless ``make run`` prints it in the end."""
    if UNDER_RUN not in os.environ:
        print(text, end="")
