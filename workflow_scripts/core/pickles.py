"""Read other people's pickles without running anything in them.

A pickle is a program. It runs here on the standard library's unpickler with every way to an object closed: a name in
the pickle is never looked up, but stands for one of the functions in ``_BUILDERS``, which check their arguments, or
the file is refused. These cover sets and bytes of old protocols, OrderedDict and defaultdict (read as dicts), and
numpy's numbers and arrays of numbers or texts (read as numbers and lists; no dtype can name an object).

Time and memory grow only with the file's size: lengths are compared with what is there, shared values are not copied,
and a key of a dict is a plain value or a short tuple of them. Shared values stay shared, so callers must follow the
expected shape and must not walk everything. Texts of Python 2 become bytes, because it does not say how they are
encoded: see ``as_text``.
"""

import io
import math
import pickle
import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.core import limits
from workflow_scripts.core.documents import no_such
from workflow_scripts.core.errors import UserError

_PLAIN = (str, bytes, int, float, bool, type(None))
_DTYPE = re.compile(r"[biufUS]\d{1,6}|O\d")


class _Refused(Exception):
    """The pickle asks for more than plain data; the message names it."""


def as_text(value: Any) -> str | None:
    """Return a text, or bytes decoded as UTF-8, else as Latin-1; None for anything else, or half a surrogate pair."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    if isinstance(value, str) and (value.isascii() or not re.search("[\ud800-\udfff]", value)):
        return value
    return None


def describe(value: Any) -> str:
    """Describe a value in an error: a plain value by its repr, others by their type."""
    if isinstance(value, str | bytes):
        return repr(value[:60])
    if isinstance(value, int) and value.bit_length() > limits.KEY_BITS:
        return "a huge number"
    if isinstance(value, _PLAIN):
        return repr(value)
    return "an array" if isinstance(value, _Array) else f"a {type(value).__name__}"


# What names in a pickle stand for


@dataclass(frozen=True)
class _Name:
    """A known name: a key of ``_BUILDERS``, or one of ``_ARGUMENTS``."""

    word: str


@dataclass
class _Dtype:
    """A plain numpy type: its letter and bytes (``i8``), and its byte order."""

    spec: str
    order: str = "="

    def plain(self) -> np.dtype:
        if self.spec.startswith("O") or int(self.spec[1:]) == 0:
            raise _Refused(f"a numpy value of type {self.spec}")
        return np.dtype(self.order + self.spec)

    def build(self, state: Any) -> None:
        order = as_text(state[1])
        self.order = order if order in ("<", ">") else "="


class _Array(list):
    """An array, read as a nested list."""

    def build(self, state: Any) -> None:
        self.fill(*state[1:])

    def fill(self, shape: tuple[int, ...], dtype: _Dtype, fortran: bool, raw: Any) -> None:
        """Make the nested list from the array's bytes, or from the list of its objects, which are plain already."""
        if isinstance(raw, list):
            flat = np.empty(len(raw), object)
            for place, value in enumerate(raw):
                flat[place] = value
        else:
            flat = np.frombuffer(raw, dtype.plain())
        # An array without entries may claim any number of empty rows.
        if len(flat) != math.prod(shape):
            raise ValueError("an array whose size differs from its shape")
        self[:] = flat.reshape(shape or (1,), order="F" if fortran else "C").tolist() if len(flat) else []


def _dtype(spec: Any, *_: Any) -> _Dtype:
    text = as_text(spec)
    if text is None or not _DTYPE.fullmatch(text):
        raise _Refused(f"a numpy type {describe(spec)}")
    return _Dtype(text)


def _scalar(dtype: _Dtype, raw: bytes) -> Any:
    (value,) = np.frombuffer(raw, dtype.plain())
    return value.item()


def _frombuffer(raw: bytes, dtype: _Dtype, shape: tuple[int, ...], order: Any = "C") -> _Array:
    array = _Array()
    array.fill(shape, dtype, as_text(order) == "F", raw)
    return array


def _key(value: Any) -> Any:
    """Return a key of a dict or an entry of a set, if it is so short that its hash never takes long."""
    if isinstance(value, str):  # most keys
        return value
    values = value if isinstance(value, tuple) else (value,)
    if len(values) > limits.KEY_PARTS or not all(isinstance(v, _PLAIN) for v in values):
        raise _Refused(f"a key that is {describe(value)}")
    if any(isinstance(v, int) and v.bit_length() > limits.KEY_BITS for v in values):
        raise _Refused("a key that is a huge number")
    return value


def _set(values: Iterable[Any] = ()) -> set:
    return set(map(_key, values))


def _dict(items: Any = ()) -> dict:
    # An OrderedDict of Python 2 has a list of [key, value], a defaultdict its default.
    return {} if isinstance(items, _Name) or items is None else {_key(key): value for key, value in items}


def _pairs(flat: list[Any]) -> dict:
    return _dict(zip(flat[0::2], flat[1::2], strict=True))


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused(f"bytes encoded as {describe(encoding)}")
    return text.encode("latin-1")


def _bytes(raw: Any = b"", encoding: str = "latin1") -> bytes:
    """Return what old protocols write for bytes; never a number of zeros."""
    return raw if isinstance(raw, bytes) else _encode(raw, encoding)


_BUILDERS: dict[str, Callable[..., Any]] = {
    "builtins.set": _set,
    "builtins.frozenset": lambda values=(): frozenset(_set(values)),
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytes,
    "_codecs.encode": _encode,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _dict,
    "numpy.dtype": _dtype,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
    "numpy.core.numeric._frombuffer": _frombuffer,
}
# Names that are only arguments: the type of an array, and what a defaultdict makes.
_ARGUMENTS = ("numpy.ndarray", "builtins.dict", "builtins.list", "builtins.int")


# The unpickler


class _File(io.BytesIO):
    """A file without a truncated last line, which would be read as a shorter name."""

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n"):
            raise EOFError("unexpected end")
        return line


class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined,misc]
    """An unpickler of plain data, based on the one written in Python.

    That in C allocates its memo up to the largest index in the file, and hashes keys unasked, so that a few bytes could
    take all memory or hang it.
    """

    stack: list[Any]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, file: _File) -> None:
        super().__init__(file, encoding="bytes")
        # Entries that builders may be given in total: a shared list may be copied, but not again and again.
        self.left = 2 * len(file.getbuffer()) + 1000

    def find_class(self, module: str, name: str) -> _Name:
        word = re.sub(r"^__builtin__\.", "builtins.", re.sub(r"^numpy\._core\.", "numpy.core.", f"{module}.{name}"))
        if word not in _BUILDERS and word not in _ARGUMENTS:
            raise _Refused(f"{module}.{name}")
        return _Name(word)

    def spend(self, values: Any) -> None:
        sized = (str, bytes, list, tuple, dict, set, frozenset)
        self.left -= sum(len(value) for value in values if isinstance(value, sized)) if isinstance(values, sized) else 0
        if self.left < 0:
            raise _Refused("more than it contains")

    def top(self, kind: type) -> Any:
        """Return the container on top of the stack, which takes entries."""
        if not isinstance(self.stack[-1], kind):
            raise TypeError(f"{describe(self.stack[-1])} instead of a {kind.__name__}")
        return self.stack[-1]

    def load_reduce(self) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        builder = _BUILDERS.get(called.word) if isinstance(called, _Name) else None
        if builder is None:
            raise _Refused(f"a call of {called.word if isinstance(called, _Name) else describe(called)}")
        self.spend(arguments)
        self.stack.append(builder(*arguments))

    def load_build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, _Dtype | _Array):
            raise _Refused(f"attributes of {describe(target)}")
        self.spend(state)
        target.build(state)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.top(dict)[_key(key)] = value

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self.top(dict).update(_pairs(items))

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.stack.append(_pairs(items))

    def load_additems(self) -> None:
        items = self.pop_mark()
        self.top(set).update(_set(items))

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.stack.append(frozenset(_set(items)))

    def load_bytearray8(self) -> None:
        self.stack.append(self.read(*struct.unpack("<Q", self.read(8))))


def _refusal(operation: str) -> Callable[[Any], None]:
    def refuse(reader: Any) -> None:
        raise _Refused(f"an object of a class ({operation})")

    return refuse


_OBJECTS = "OBJ NEWOBJ NEWOBJ_EX EXT1 EXT2 EXT4 PERSID BINPERSID NEXT_BUFFER READONLY_BUFFER"
_CHECKED = "REDUCE BUILD SETITEM SETITEMS DICT ADDITEMS FROZENSET BYTEARRAY8"
_Unpickler.dispatch = {  # type: ignore[assignment]
    **pickle._Unpickler.dispatch,  # type: ignore[attr-defined]
    **{getattr(pickle, name)[0]: _refusal(name) for name in _OBJECTS.split()},
    **{getattr(pickle, name)[0]: getattr(_Unpickler, f"load_{name.lower()}") for name in _CHECKED.split()},
}
_DAMAGE = (
    *(pickle.UnpicklingError, struct.error, EOFError, OverflowError),
    *(AttributeError, LookupError, TypeError, ValueError),
)


def plain_pickle(value: Any) -> bytes:
    """Return a pickle that every Python 3 reads."""
    return pickle.dumps(value, protocol=2)


class DictPickler:
    """Writes a dict of texts, numbers and such dicts item by item, with the bytes that ``plain_pickle`` gives it.

    A pickle refers to objects that it has already. Of such a dict these are the keys of inner dicts, the values of the
    keys ``shared``, which pyarrow makes once each, and the texts of one character, which Python has once.
    """

    def __init__(self, shared: Collection[str]) -> None:
        self.shared = shared
        self.known: dict[tuple[str, str], int] = {}
        self.count = 0

    def _refer(self, short: bytes, long: bytes, number: int) -> bytes:
        return short + bytes([number]) if number < 256 else long + number.to_bytes(4, "little")

    def _put(self) -> bytes:
        self.count += 1
        return self._refer(pickle.BINPUT, pickle.LONG_BINPUT, self.count - 1)

    def _save(self, value: Any, scope: str | None = None) -> bytes:
        """Return the bytes of a value; one with a ``scope`` is known where it is in the scope again."""
        if isinstance(value, dict):
            return b"".join(self.dump(value.items(), len(value), True))
        if isinstance(value, int):
            return pickle.dumps(value, 2)[2:-1]
        if len(value) < 2 and value < "\u0100":
            scope = ""
        if scope is not None:
            if (scope, value) in self.known:
                return self._refer(pickle.BINGET, pickle.LONG_BINGET, self.known[scope, value])
            self.known[scope, value] = self.count
        text = value.encode("utf-8", "surrogatepass")
        return pickle.BINUNICODE + len(text).to_bytes(4, "little") + text + self._put()

    def dump(self, items: Iterable[tuple[Any, Any]], size: int, is_inner: bool = False) -> Iterator[bytes]:
        """Yield the bytes of a dict of ``size`` items."""
        yield (b"" if is_inner else pickle.PROTO + b"\2") + pickle.EMPTY_DICT + self._put()
        saved = (
            self._save(key, "" if is_inner else None) + self._save(value, key if key in self.shared else None)
            for key, value in items
        )
        # Batches as in CPython's _pickle.c.
        if size == 1:
            yield from (*saved, pickle.SETITEM)
        else:
            for _ in range(0, size and size + 1, 1000):
                yield pickle.MARK
                yield from islice(saved, 1000)
                yield pickle.SETITEMS
        yield b"" if is_inner else pickle.STOP


def read_pickle(path: str | Path) -> Any:
    """Return the plain content of a pickle of protocol 0 to 5 (see above): lists, dicts, texts, numbers."""
    path = Path(path)
    if not path.is_file():
        raise UserError(no_such(path))
    file = _File(path.read_bytes())
    if file.getvalue().startswith(b"\x1f\x8b"):
        raise UserError(f"{path}: compressed by gzip; unpack it first")
    try:
        content = _Unpickler(file).load()
    except _Refused as error:
        raise UserError(f"{path}: refused, because it would build {error}; only plain data is read") from error
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise UserError(f"{path}: truncated, damaged or not a pickle ({reason}); get it again") from error
    if rest := len(file.getbuffer()) - file.tell():
        raise UserError(f"{path}: {rest} bytes follow the end of the pickle; get it again")
    return content
