"""Commands, whose options follow from a pydantic model: where log lines go, errors as one line.

Command lines are parsed by pydantic-settings, because the settings are pydantic models already: one
validation, one set of descriptions and messages.
"""

import inspect
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from pydantic import BaseModel, ValidationError, model_validator

from compclip.core.errors import UserError, one_line
from compclip.core.identity import digests
from compclip.core.log import UNDER_RUN, log
from compclip.core.reading.documents import require_folder, require_regular
from compclip.core.settings.section import Section

# On a terminal: go to the start of the line and clear it, where a progress bar may be.
CLEAR = "\r\x1b[K"
LOGGED = re.compile(
    r"^\S+ \S+ (INFO|ERROR) (?:error: )?(.*?)(?: \(traceback: [^()]*\))?$", re.MULTILINE
)

# Signals that ask a process to end: of a batch system or `timeout`, and of a closed terminal.
ENDING = (signal.SIGTERM, signal.SIGHUP)


class Command(BaseModel):
    """The base of all commands; a field is an option."""

    model_config = Section.model_config
    makes_folder: ClassVar[bool] = False  # as its ``output``, instead of a file

    @model_validator(mode="after")
    def _check_output(self) -> Self:
        """Refuse an output that cannot be written before the work is done."""
        output = getattr(self, "output", None)
        if isinstance(output, Path):
            if not self.makes_folder:
                require_regular(output)
            require_folder(output if self.makes_folder else output.parent)
        return self


C = TypeVar("C", bound=Command)


def start_logging(log_file: Path | None = None) -> None:
    """Log plain lines to standard error and, with times, to a file."""
    # On a full disk, the log's own failure must not hide the step's.
    logging.raiseExceptions = False
    # limits.PIXELS is where Pillow refuses an image; it warns from half of that.
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")
    # Viewers ignore damaged EXIF.
    warnings.filterwarnings("ignore", "Corrupt EXIF data")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()
    screen = logging.StreamHandler()
    clear = CLEAR if sys.stderr.isatty() else ""
    hint = ""
    if UNDER_RUN in os.environ:
        screen.addFilter(
            lambda record: record.levelno >= logging.WARNING and not hasattr(record, "ends")
        )
        hint = f" (log: {log_file})" if log_file else ""
    screen.setLevel(logging.INFO)
    screen.setFormatter(logging.Formatter(f"{clear}%(message)s{hint}"))
    log.addHandler(screen)
    if log_file is not None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        # When several processes train together, the first starts the log and the others append
        # their errors.
        if os.environ.get("RANK", "0") == "0":
            log_file.write_bytes(b"")
        file = logging.FileHandler(log_file, mode="a", encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(file)


def last_logged(log_file: str, level: str) -> str:
    """Return the last line of a level in the log of a step, "" if there is none."""
    file = Path(log_file)
    lines = (
        LOGGED.findall(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else []
    )
    return next((line for kind, line in reversed(lines) if kind == level), "")


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a process as Ctrl-C does; the argument is the signal."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise Terminated in the main thread when SIGTERM or SIGHUP arrives inside the block."""
    process = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        if os.getpid() != process:
            # A forked worker ends at once; its parent says why.
            os._exit(128 + number)
        raise Terminated(signal.Signals(number))

    numbers = list[signal.Signals]()
    if threading.current_thread() is threading.main_thread():
        # nohup ignores SIGHUP, and an application that calls a command may have handlers of its
        # own.
        numbers = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def one_line_errors(log_file: Path | None = None) -> Iterator[None]:
    """Turn an error inside the block into one line, its traceback into lines of the log, and exit
    with 1.
    """
    try:
        with ended_by_signals():
            yield
    except Terminated as error:
        log.error("terminated; run again to resume", extra={"ends": True})
        sys.exit(128 + error.args[0])
    except KeyboardInterrupt:
        log.error("interrupted; run again to resume", extra={"ends": True})
        sys.exit(130)
    except Exception as error:
        # Only the file gets the traceback: its handler alone takes DEBUG.
        log.debug("traceback", exc_info=True)
        hint = (
            "" if isinstance(error, UserError) or log_file is None else f" (traceback: {log_file})"
        )
        log.error("error: %s%s", one_line(error), hint, extra={"ends": True})
        sys.exit(1)


def parse(declared: type[C], arguments: Sequence[str], program: str) -> C:
    """Return the command that a command line asks for; exits as argparse does for ``--help`` and
    unknown options.

    Raises:
        UserError: an option has a value that the command does not take.
    """
    # Imported here, because steps and checks of configs, which also import this module, do without.
    from pydantic_settings import CliApp, SettingsError

    sys.argv[0] = program
    declared.__doc__ = inspect.cleandoc(declared.__doc__ or "")
    try:
        return CliApp.run(declared, cli_args=list(arguments))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])).replace("_", "-")
        raise UserError(
            f"--{where}: {first['msg'].removeprefix('Value error, ')}, got {first['input']!r}"
        ) from None
    except SettingsError as error:
        raise UserError(" ".join(str(error).split())) from None


def run(
    main: Callable[[Any], None], arguments: Sequence[str] | None = None, program: str | None = None
) -> None:
    """Run ``main``, whose argument is annotated with the command's class; recorded artifacts it
    names are checked.

    By default, the arguments are those of the process, which was started as ``python -m``.
    """
    declared = next(iter(get_type_hints(main).values()))
    specification = sys.modules["__main__"].__spec__
    program = program or (f"python -m {specification.name}" if specification else sys.argv[0])
    start_logging()
    with one_line_errors():
        command = parse(declared, sys.argv[1:] if arguments is None else arguments, program)
        digests.check(path for _, path in command if isinstance(path, Path))
        main(command)


def show(text: str) -> None:
    """Print a result, unless ``make run`` prints it in the end."""
    if UNDER_RUN not in os.environ:
        print(text, end="")
