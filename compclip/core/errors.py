"""Errors for users: an exception with a one-line message, and one-line texts for all other
exceptions.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """An error that the user can fix: one line on where (file, row, key), what is wrong and what to
    do.
    """


def require(holds: object, where: object, fault: str, remedy: str = "") -> None:
    """Raise UserError with location, fault and remedy unless ``holds`` is true."""
    if not holds:
        raise UserError(f"{where}: {fault}{remedy and f'; {remedy}'}")


@contextmanager
def memory_for(place: object) -> Iterator[None]:
    """Turn out-of-memory errors inside the block into a UserError that names what was read."""
    try:
        yield
    except Exception as error:
        # If memory is too short for a thread's stack, arrow raises a generic error.
        if not isinstance(error, MemoryError) and "Failed to launch worker thread" not in str(
            error
        ):
            raise
        raise UserError(
            f"{place}: not enough memory to read it; close other programs and run again"
        ) from error


def one_line(error: BaseException) -> str:
    """Return an error's message on one line; unprintable characters are escaped."""
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
    # Several errors of a config take one line each.
    return "\n".join(map(printable, text.split("\n")))


def printable(text: str) -> str:
    """Return a text with escapes instead of its unprintable characters, such as line breaks."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
