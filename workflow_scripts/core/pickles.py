"""Pickles of others, read without Python's unpickler: nothing in them can run, import or build anything of theirs.

A pickle is a program. Here its steps are split by the standard library's own table of them (``pickletools``) and
done by a machine that only knows lists, tuples, dicts, sets, strings, bytes, numbers, booleans and None. A name in
the pickle is never looked up: it is one of the few in ``_BUILDERS``, each a function of this file that checks what
it is given, or the file is refused. They cover what public files hold: sets and bytes of old protocols,
OrderedDict and defaultdict (as dicts), numpy's numbers and arrays of numbers or texts (as numbers and lists, made
from the raw bytes; their type is spelled out, so that no dtype can name an object).

Work and memory grow with the file's size alone: lengths are checked against what is there, what is shared is not
copied, and a key of a dict is a plain value or a short tuple of such. What comes out may still be shared many times
over, so readers follow the shape that they expect and walk nothing else. The texts of Python 2 come as bytes, as it
does not say how they are encoded: ``as_text``.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.core.errors import UserError

_PLAIN = (str, bytes, int, float, bool, type(None))
_DTYPE = re.compile(r"[biufUS]\d{1,6}|O\d")


class _Refused(Exception):
    """What the pickle wanted, in words."""


class _Damaged(Exception):
    """What is wrong with the pickle, in words."""


@dataclass(frozen=True)
class _Name:
    """A known name, to be called; ``word`` is a key of ``_BUILDERS``, or a word that they take as argument."""

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


class _Array(list):
    """An array on its way to a nested list."""


def as_text(value: Any) -> str | None:
    """``value`` if it is a text; of bytes, as Python 2 wrote texts, their UTF-8 or else Latin-1; None of all else.

    A text with half a character in it is no text.
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    if isinstance(value, str) and (value.isascii() or not re.search("[\ud800-\udfff]", value)):
        return value
    return None


def describe(value: Any) -> str:
    """A value in a few words, for an error: a plain one as it is, of others their kind."""
    if isinstance(value, str | bytes):
        return repr(value[:60])
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    if isinstance(value, _PLAIN):
        return repr(value)
    return "an array" if isinstance(value, _Array) else f"a {type(value).__name__}"


# What names in a pickle stand for


def _dtype(spec: Any, *_: Any) -> _Dtype:
    text = as_text(spec)
    if text is None or not _DTYPE.fullmatch(text):
        raise _Refused(f"a numpy type {describe(spec)}")
    return _Dtype(text)


def _scalar(dtype: _Dtype, raw: bytes) -> Any:
    kind = dtype.plain()
    if len(raw) != kind.itemsize:
        raise _Damaged("a number of the wrong length")
    return np.frombuffer(raw, kind)[0].item()


def _fill(array: _Array, shape: tuple[int, ...], dtype: _Dtype, fortran: bool, raw: Any) -> None:
    """The nested list of an array from its bytes, or from the list of its objects, which are plain already."""
    size = math.prod(shape)
    if isinstance(raw, list):
        flat = np.empty(len(raw), object)
        for place, value in enumerate(raw):
            flat[place] = value
    else:
        flat = np.frombuffer(raw, dtype.plain())
    # An array with no entry may claim any number of rows of them.
    if len(flat) != size:
        raise _Damaged("an array of another size than its shape")
    array[:] = flat.reshape(shape or (1,), order="F" if fortran else "C").tolist() if size else []


def _frombuffer(raw: bytes | bytearray, dtype: _Dtype, shape: tuple[int, ...], order: Any = "C") -> _Array:
    array = _Array()
    _fill(array, shape, dtype, as_text(order) == "F", bytes(raw))
    return array


def _key(value: Any) -> Any:
    """A key, or an entry of a set, which Python hashes each time: short, so that no hash takes long."""
    flat = value if isinstance(value, tuple) else (value,)
    if len(flat) > 8 or not all(isinstance(part, _PLAIN) for part in flat):
        raise _Refused(f"a key that is {describe(value)}")
    if any(isinstance(part, int) and part.bit_length() > 64 for part in flat):
        raise _Refused("a key that is a huge number")
    return value


def _set(values: Iterable[Any] = ()) -> set:
    return set(map(_key, values))


def _dict(items: Any = ()) -> dict:
    # OrderedDict of Python 2: a list of [key, value]; a defaultdict's default.
    return {} if isinstance(items, _Name) or items is None else {_key(key): value for key, value in items}


def _bytes(raw: Any = b"", encoding: str = "latin1") -> bytes:
    """What old protocols write for bytes; never that many zeros."""
    return raw if isinstance(raw, bytes) else _encode(raw, encoding)


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused(f"bytes encoded as {describe(encoding)}")
    return text.encode("latin-1")


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
# Names that are arguments alone: what an array is, and what a defaultdict makes.
_WORDS = ("numpy.ndarray", "builtins.dict", "builtins.list", "builtins.int")


def _known(module: str, name: str) -> _Name:
    word = f"{module}.{name}"
    same = re.sub(r"^numpy\._core\.", "numpy.core.", re.sub(r"^__builtin__\.", "builtins.", word))
    if same not in _BUILDERS and same not in _WORDS:
        raise _Refused(word)
    return _Name(same)


# The operations


def _old_string(file: io.BytesIO) -> bytes:
    """The argument of STRING, which ``pickletools`` reads as ASCII alone: a quoted text of Python 2, with escapes."""
    raw = pickletools.read_stringnl(file, decode=False)
    return raw.decode("unicode_escape").encode("latin-1")


_READERS = {op.code: (op.name, op.arg.reader if op.arg else None) for op in pickletools.opcodes}
_READERS["S"] = ("STRING", _old_string)
_OPERATIONS = {code.encode("latin-1"): found for code, found in _READERS.items()}
_VALUES = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 STRING "
    "BINBYTES SHORT_BINBYTES BINBYTES8".split()
)


def _run(file: io.BytesIO) -> Any:
    """Do the operations of a pickle one after the other.

    ``stack`` holds what was built since the last mark, ``below`` the stacks under the marks.
    """
    stack: list[Any] = []
    below: list[list[Any]] = []
    memo: dict[int, Any] = {}
    # What builders may be given in all: a list that is shared may be copied, but not again and again.
    left = 2 * len(file.getbuffer()) + 1000
    while True:
        code = file.read(1)
        if code not in _OPERATIONS:
            raise _Damaged(f"byte {code[0]} is no operation" if code else "it ends before its end")
        name, reader = _OPERATIONS[code]
        argument = reader(file) if reader else None
        if name in _VALUES:
            stack.append(argument)
            continue
        if left < 0:
            raise _Refused("more than it holds")
        # The most frequent first.
        match name:
            case "BINPUT" | "LONG_BINPUT" | "PUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET" | "GET":
                stack.append(memo[argument])
            case "MARK":
                below.append(stack)
                stack = []
            case "EMPTY_DICT":
                stack.append({})
            case "SETITEMS":
                values, stack = stack, below.pop()
                _top(stack, dict).update(_pairs(values))
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                _top(stack, dict)[_key(key)] = value
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                values = [stack.pop() for _ in range(int(name[-1]))]
                stack.append(tuple(values[::-1]))
            case "TUPLE":
                values, stack = stack, below.pop()
                stack.append(tuple(values))
            case "APPENDS":
                values, stack = stack, below.pop()
                _top(stack, list).extend(values)
            case "APPEND":
                value = stack.pop()
                _top(stack, list).append(value)
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(())
            case "EMPTY_SET":
                stack.append(set())
            case "ADDITEMS":
                values, stack = stack, below.pop()
                _top(stack, set).update(map(_key, values))
            case "LIST" | "DICT" | "FROZENSET":
                values, stack = stack, below.pop()
                stack.append(
                    values if name == "LIST" else _pairs(values) if name == "DICT" else frozenset(_set(values))
                )
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "BINSTRING" | "SHORT_BINSTRING":
                # ``pickletools`` reads the bytes of Python 2's texts as Latin-1.
                stack.append(argument.encode("latin-1"))
            case "BYTEARRAY8":
                stack.append(bytes(argument))
            case "GLOBAL":
                stack.append(_known(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                last, module = as_text(stack.pop()), as_text(stack.pop())
                stack.append(_known(str(module), str(last)))
            case "REDUCE":
                values, called = stack.pop(), stack.pop()
                left -= _size(values)
                stack.append(_call(called, values))
            case "BUILD":
                state = stack.pop()
                left -= _size(state)
                _build(stack[-1], state)
            case "POP":
                if stack:
                    stack.pop()
                else:
                    stack = below.pop()
            case "POP_MARK":
                stack = below.pop()
            case "DUP":
                stack.append(stack[-1])
            case "PROTO":
                if argument > pickle.HIGHEST_PROTOCOL:
                    raise _Damaged(f"its protocol {argument} is not known")
            case "FRAME":
                pass  # says how much follows, which is found all the same
            case "STOP":
                return stack.pop()
            case "INST":
                raise _Refused(argument.replace(" ", "."))
            case _:
                raise _Refused(f"an object of a class ({name})")


def _size(values: Any) -> int:
    return sum(len(value) for value in values if isinstance(value, str | bytes | list | tuple | dict | set | frozenset))


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return {_key(key): value for key, value in zip(flat[0::2], flat[1::2], strict=True)}


def _top(stack: list[Any], kind: type) -> Any:
    """The container on top of the stack, which is to take entries."""
    if not isinstance(stack[-1], kind):
        raise _Damaged(f"{describe(stack[-1])} where a {kind.__name__} should be")
    return stack[-1]


def _call(called: Any, values: Any) -> Any:
    builder = _BUILDERS.get(called.word) if isinstance(called, _Name) else None
    if builder is None or not isinstance(values, tuple):
        raise _Refused(f"a call of {called.word if isinstance(called, _Name) else describe(called)}")
    return builder(*values)


def _build(target: Any, state: Any) -> None:
    if isinstance(target, _Dtype):
        order = as_text(state[1])
        target.order = order if order in ("<", ">") else "="
    elif isinstance(target, _Array):
        _fill(target, *state[1:])
    else:
        raise _Refused(f"attributes of {describe(target)}")


def plain_pickle(value: Any) -> bytes:
    """The bytes of a pickle that every Python 3 reads."""
    return pickle.dumps(value, protocol=2)


def read_pickle(path: str | Path) -> Any:
    """The plain content of a pickle of protocol 0 to 5 (module docstring): lists, dicts, texts, numbers.

    Raises UserError, one line, for a file that is missing, cut short or damaged, that goes on after its end, and
    for one that would build anything else, with its name.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
    file = io.BytesIO(path.read_bytes())
    if file.getbuffer()[:2] == b"\x1f\x8b":
        raise UserError(f"{path}: is compressed by gzip: unpack it first")
    try:
        content = _run(file)
    except _Refused as error:
        raise UserError(f"{path}: refused: it would build {error}; only plain data is read") from error
    except (_Damaged, AssertionError, AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise UserError(
            f"{path}: cut short, damaged or no pickle ({reason}, byte {file.tell()}): get it again"
        ) from error
    if rest := len(file.read()):
        raise UserError(f"{path}: {rest} bytes follow the end of the pickle: get it again")
    return content
