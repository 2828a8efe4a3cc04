"""Write files whole or not at all, and read and write text and JSON."""

from __future__ import annotations

import errno
import glob
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compclip.core.errors import UserError, require
from compclip.core.reading.documents import parse_json, require_folder, require_regular

if TYPE_CHECKING:
    import pandas as pd

# full disk, full quota, file-size limit
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ROWS_AT_ONCE = 1 << 15  # of a table, written as JSON


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Turn a full disk inside the block into a UserError that names ``path``."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        number = _no_room(error)
        if number is None:
            raise
        reason = os.strerror(number).lower()
        raise UserError(
            f"{path}: not written ({reason}); free some disk space and run again"
        ) from error


def _no_room(error: BaseException) -> int | None:
    """Return the error number in ``_NO_ROOM`` that caused an error: torch wraps it, safetensors has
    only its text.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
            return cause.errno
        cause = cause.__cause__ or cause.__context__
    return next((number for number in _NO_ROOM if f"(os error {number})" in str(error)), None)


def _beside(path: Path, kind: str) -> Path:
    """Return a hidden name beside ``path`` for this process; delete files left behind by processes
    that have ended.
    """
    require(
        path.name not in ("", ".."),
        path,
        "not usable as the name of an output",
        "give the path of a file",
    )
    require_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    start = f".{path.name}.{platform.node()}-"
    for left in path.parent.glob(f"{glob.escape(start)}*.{kind}"):
        number = left.name.removeprefix(start).removesuffix(f".{kind}")
        if number.isdecimal() and not _alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)
            with suppress(OSError):
                left.unlink(missing_ok=True)
    return path.with_name(f"{start}{os.getpid()}.{kind}")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        pass
    return True


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path``; move it into place when the block ends, remove it
    when it fails.

    Two runs may write the same artifact at the same time, because each has its own temporary name.
    """
    path = Path(path)
    require_regular(path)
    temporary = _beside(path, "tmp")
    try:
        with room_for(path):
            yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Do the same as ``atomic`` for a folder; an existing one is replaced. One process at a time
    writes a folder.
    """
    require(
        os.path.isdir(path) or not os.path.lexists(path),
        path,
        "not a folder",
        "choose another path",
    )
    with scratch_folder(path) as temporary:
        with room_for(Path(path)):
            yield temporary
        with scratch_folder(path, "old") as replaced:
            with suppress(FileNotFoundError):
                os.rename(path, replaced)
            os.rename(temporary, path)


@contextmanager
def scratch_folder(path: str | Path, kind: str = "tmp") -> Iterator[Path]:
    """Yield an empty folder with a hidden name beside ``path``; remove it when the block ends or
    fails.
    """
    temporary = _beside(Path(path), kind)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(text: str | Iterable[str], path: str | Path) -> None:
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines([text] if isinstance(text, str) else text)


def write_json(value: Any, path: str | Path) -> None:
    """Write JSON, indented, keys in the given order, with a final newline; NaN raises
    ValueError.
    """
    write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def json_lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield a JSON object for each row, keys in the order of columns, null where a value is
    missing.
    """
    for begin in range(0, len(table), ROWS_AT_ONCE):
        rows = table[begin : begin + ROWS_AT_ONCE]
        for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
            yield json.dumps(row, ensure_ascii=False) + "\n"


def read_json(path: str | Path) -> Any:
    require_regular(Path(path))
    try:
        return parse_json(Path(path).read_bytes().decode("utf-8-sig"))
    except ValueError as error:
        raise UserError(
            f"{path}: not valid JSON ({error}); correct it, or delete it and run again"
        ) from error


def safe_id(image_id: str) -> str:
    """Return ``image_id`` if it is a path that stays in its folder, maybe with ``/``; else raise
    UserError.
    """
    names = image_id.split("/")
    # An empty id has one empty name.
    leaves_folder = any(name in ("", ".", "..") for name in names)
    # As other systems separate folders, and name disks.
    is_foreign = "\\" in image_id or ":" in names[0]
    is_text = not any(_is_unsafe(ord(character)) for character in image_id)
    is_usable = is_text and not leaves_folder and not is_foreign
    fault = "not usable as a path inside a folder"
    require(is_usable, f"image_id {image_id!r}", fault, "rename it")
    return image_id


def _is_unsafe(code: int) -> bool:
    """Return whether a character is a control character or a lone surrogate."""
    return code < 32 or code == 127 or 0xD800 <= code < 0xE000
