"""Read other people's pickles without running anything in them.

A pickle is a program that calls functions by name. Only names in ``_BUILDERS`` are allowed; a file
with any other is refused. NumPy arrays become lists. Texts of Python 2 become bytes, because their
encoding is unknown.
"""

import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from compclip.core.errors import UserError, one_line
from compclip.core.reading.documents import no_such


class _Refused(Exception):
    """The pickle asks for more than plain data; the message names it."""


class _Dtype:
    """The type of a NumPy number or text; NumPy's own class, restored from a hostile file, may read
    any memory.
    """

    def __init__(self, name: Any, *_: Any) -> None:
        text = name.decode("latin-1") if isinstance(name, bytes) else str(name)
        if not re.fullmatch(r"[biufUS]\d{1,6}|O\d", text):
            raise _Refused(f"a numpy type {text[:60]!r}")
        self.dtype = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        if state[1] in (">", b">"):
            self.dtype = self.dtype.newbyteorder(">")

    def read(self, raw: Any, shape: tuple[int, ...] = (1,), order: Any = "C") -> list[Any]:
        """Return an array's values as a nested list; an array without values may claim any number
        of empty rows.
        """
        values = (
            np.fromiter(raw, object) if self.dtype == object else np.frombuffer(raw, self.dtype)
        )
        return values.reshape(shape or (1,), order=order).tolist() if len(values) else []


class _Array(list):
    """An array, read as a nested list."""

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, is_fortran, raw = state
        self[:] = kind.read(raw, shape, "F" if is_fortran else "C")


_BUILDERS: dict[str, Callable[..., Any]] = {
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "collections.OrderedDict": dict,
    "collections.defaultdict": lambda factory=None: {},
    "numpy.dtype": _Dtype,
    "numpy.core.multiarray.scalar": lambda kind, raw: kind.read(raw)[0],
    "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
    "numpy.core.numeric._frombuffer": lambda raw, kind, shape, order: kind.read(raw, shape, order),
    # Old protocols write bytes so.
    **dict.fromkeys(
        ("builtins.bytes", "_codecs.encode"),
        lambda text="", encoding="latin1": text.encode("latin-1"),
    ),
    # The type of an array, and the factory of a defaultdict: only arguments.
    **dict.fromkeys(
        ("numpy.ndarray", "builtins.dict", "builtins.list", "builtins.int"), lambda *_: None
    ),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        word = re.sub(
            r"^__builtin__\.",
            "builtins.",
            re.sub(r"^numpy\._core\.", "numpy.core.", f"{module}.{name}"),
        )
        if word not in _BUILDERS:
            raise _Refused(f"{module}.{name}")
        return _BUILDERS[word]


def read_pickle(path: str | Path) -> Any:
    """Return the plain content of a pickle of protocol 0 to 5: lists, dicts, texts, numbers."""
    path = Path(path)
    if not path.is_file():
        raise UserError(no_such(path))
    try:
        return _Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except _Refused as error:
        raise UserError(
            f"{path}: refused, because it would build {error}; only plain data is read"
        ) from error
    except Exception as error:  # damaged pickles raise many kinds
        reason = one_line(error)[:120]
        raise UserError(
            f"{path}: truncated, damaged or not a pickle ({reason}); get it again"
        ) from error
