"""The exception whose message is written for users, and the line that any error becomes."""

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """An error that the user can fix: one line on where (file, row, key), what is wrong and what to do."""


def require(holds: object, where: object, fault: str, remedy: str = "") -> None:
    """Raise UserError with place, fault and remedy unless ``holds`` is true."""
    if not holds:
        raise UserError(f"{where}: {fault}{remedy and f'; {remedy}'}")


@contextmanager
def memory_for(place: object) -> Iterator[None]:
    """Turn a lack of memory inside the block into a UserError that names what was read."""
    try:
        yield
    except Exception as error:
        # Without memory for a thread's stack, arrow raises an error of no special type.
        if not isinstance(error, MemoryError) and "Failed to launch worker thread" not in str(error):
            raise
        raise UserError(f"{place}: not enough memory to read it; close other programs and run again") from error


def one_line(error: BaseException) -> str:
    """Return an error's message with escapes for what a terminal would not show."""
    if isinstance(error, UserError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = "out of memory; close other programs or use smaller batches in the config"
    elif isinstance(error, ImportError) and "failed to map segment" in str(error):
        text = f"{error}, probably because memory ran out; close other programs and run again"
    elif isinstance(error, OSError):
        text = f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"
    else:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    # Several errors of a config are a line each.
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
