"""Read other people's pickles without running anything in them.

A pickle is a program that calls what it names. Here a name stands for one of the functions in ``_BUILDERS``, or the
file is refused. Texts of Python 2 become bytes, because it does not say how they are encoded: see ``decoded``.
"""

import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from compclip.core import limits
from compclip.core.documents import no_such
from compclip.core.errors import UserError, require


class _Refused(Exception):
    """The pickle asks for more than plain data; the message names it."""


def decoded(value: Any) -> str | None:
    """Return a text, or bytes decoded as UTF-8, else as Latin-1; None for anything else, or half a surrogate pair."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    return value if isinstance(value, str) and not re.search("[\ud800-\udfff]", value) else None


def describe_value(value: Any) -> str:
    """Describe a value in an error: a plain value by its repr, others by their type."""
    if isinstance(value, str | bytes):
        return repr(value[:60])
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    kind = "list" if isinstance(value, list) else type(value).__name__
    return repr(value) if isinstance(value, int | float | None) else f"a {kind}"


class _Dtype:
    """A numpy type of numbers, texts or objects."""

    def __init__(self, spec: Any, *_: Any) -> None:
        self.spec, self.order = decoded(spec) or "", "<"
        if not re.fullmatch(r"[biufUS]\d{1,6}|O\d", self.spec):
            raise _Refused(f"a numpy type {describe_value(spec)}")

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if decoded(state[1]) == ">" else "<"

    def read(self, raw: Any, shape: tuple[int, ...] = (1,), order: Any = "C") -> list[Any]:
        """Return an array's values as a nested list; without values, it may claim any number of empty rows."""
        values = np.fromiter(raw, object) if self.spec[0] == "O" else np.frombuffer(raw, self.order + self.spec)
        return values.reshape(shape or (1,), order=order).tolist() if len(values) else []


class _Array(list):
    """An array, read as a nested list."""

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, raw = state
        self[:] = dtype.read(raw, shape, "F" if is_fortran else "C")


def _bytes(raw: Any = b"", encoding: Any = "latin1") -> bytes:
    """Return what old protocols write for bytes; never a number of zeros."""
    return raw if isinstance(raw, bytes) else raw.encode("latin-1")


_BUILDERS: dict[str, Callable[..., Any]] = {
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.bytes": _bytes,
    "_codecs.encode": _bytes,
    "collections.OrderedDict": dict,
    "collections.defaultdict": lambda factory=None: {},
    "numpy.dtype": _Dtype,
    "numpy.core.multiarray.scalar": lambda dtype, raw: dtype.read(raw)[0],
    "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
    "numpy.core.numeric._frombuffer": lambda raw, dtype, shape, order: dtype.read(raw, shape, order),
    # The type of an array, and what a defaultdict makes: only arguments.
    **dict.fromkeys(("numpy.ndarray", "builtins.dict", "builtins.list", "builtins.int"), lambda *_: None),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        word = re.sub(r"^__builtin__\.", "builtins.", re.sub(r"^numpy\._core\.", "numpy.core.", f"{module}.{name}"))
        if word not in _BUILDERS:
            raise _Refused(f"{module}.{name}")
        return _BUILDERS[word]


def read_pickle(path: str | Path) -> Any:
    """Return the plain content of a pickle of protocol 0 to 5: lists, dicts, texts, numbers."""
    path = Path(path)
    if not path.is_file():
        raise UserError(no_such(path))
    size = path.stat().st_size
    require(size <= limits.PICKLE_BYTES, path, limits.over("PICKLE_BYTES", f"{size:,} bytes"), "do not trust it")
    try:
        return _Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except _Refused as error:
        raise UserError(f"{path}: refused, because it would build {error}; only plain data is read") from error
    except Exception as error:  # damaged pickles raise many kinds
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise UserError(f"{path}: truncated, damaged or not a pickle ({reason}); get it again") from error
