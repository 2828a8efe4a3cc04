"""Read and write files: completely or not at all, with equal bytes for equal content."""

import errno
import glob
import json
import os
import platform
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq
from pyarrow.compute import is_in

from workflow_scripts.core.documents import parse_json
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.tables import Schema

# A full disk, a full quota, a file-size limit.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
# What a spreadsheet executes, also in full-width characters, after apostrophes that it may drop.
_FORMULA = r"'*[=+\-@\t\r\n＝＋－＠]"
# Rows of a row group, which are decoded, and become Python objects, at the same time.
ROWS_PER_GROUP = 1 << 15
# Images whose rows several tables are joined by at the same time.
IMAGES_PER_BLOCK = 1 << 10


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
        raise UserError(f"{path}: not written ({reason}); free some disk space and run again") from error


def _no_room(error: BaseException) -> int | None:
    """Return which of ``_NO_ROOM`` caused an error: torch wraps it, safetensors only has its text."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
            return cause.errno
        cause = cause.__cause__ or cause.__context__
    return next((number for number in _NO_ROOM if f"(os error {number})" in str(error)), None)


def _beside(path: Path, kind: str) -> Path:
    """Return a hidden name beside ``path`` for this process; remove what ended processes left under such names."""
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
    """Yield a temporary file beside ``path``; move it into place when the block ends, remove it when it fails.

    Two runs may write the same artifact at the same time: each has its own temporary name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path, "tmp")
    try:
        with room_for(path):
            yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Do the same as ``atomic`` for a folder; an existing one is replaced."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path, "tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    replaced = _beside(path, "old")
    shutil.rmtree(replaced, ignore_errors=True)
    try:
        with room_for(path):
            yield temporary
        while True:
            with suppress(FileNotFoundError):
                os.rename(path, replaced)
            try:
                os.rename(temporary, path)
                break
            except OSError as error:
                # Another run has written the folder in between.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def write_text(text: str | Iterable[str], path: str | Path) -> None:
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines([text] if isinstance(text, str) else text)


def write_json(value: Any, path: str | Path) -> None:
    """Write JSON, indented, keys in the given order, with a final newline; NaN raises ValueError."""
    write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def json_lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield a JSON object for each row, keys in the order of columns, null where a value is missing."""
    # In batches, because Python objects need several times the table's memory.
    parts = (table.iloc[start : start + ROWS_PER_GROUP] for start in range(0, len(table), ROWS_PER_GROUP))
    rows = (row for part in parts for row in part.astype(object).where(part.notna(), None).to_dict("records"))
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_json(path: str | Path) -> Any:
    try:
        return parse_json(Path(path).read_bytes().decode("utf-8-sig"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); correct it, or delete it and run again") from error


def spreadsheet_safe(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for CSV whose texts a spreadsheet does not execute.

    A text that begins like a formula gets an apostrophe before it, as OWASP recommends against CSV injection;
    ``spreadsheet_texts`` removes it.
    """
    return _replace_texts(table, rf"(?={_FORMULA})", "'")


def spreadsheet_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return what ``spreadsheet_safe`` was given."""
    return _replace_texts(table, rf"'(?={_FORMULA})", "")


def _replace_texts(table: pd.DataFrame, pattern: str, replacement: str) -> pd.DataFrame:
    start = re.compile(rf"\A{pattern}")

    def replaced(value: Any) -> Any:
        return start.sub(replacement, value) if isinstance(value, str) else value

    texts = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    return table.assign(**{name: table[name].map(replaced) for name in texts})


def check_table(table: pd.DataFrame, schema: Schema, where: str | Path) -> pd.DataFrame:
    """Return ``table`` with the schema's columns in its order; raise UserError with the first fault."""
    if fault := schema.fault(table):
        raise UserError(f"{where}: {fault}")
    return table[list(schema.columns)]


def write_table(table: pd.DataFrame, path: str | Path, schema: Schema) -> None:
    """Check ``table`` against ``schema`` and write it as Parquet, rows in the given order."""
    write_frame(check_table(table, schema, path), path)


def write_frame(table: pd.DataFrame, path: str | Path) -> None:
    """Write Parquet without a check: for tables that only their source knows (``scenes``)."""
    with atomic(path) as temporary:
        table.reset_index(drop=True).to_parquet(temporary, index=False, row_group_size=ROWS_PER_GROUP, **PARQUET)


def read_table(
    path: str | Path, schema: Schema, columns: list[str] | None = None, images: Collection[str] | None = None
) -> pd.DataFrame:
    """Read Parquet and check it against ``schema``; ``columns`` reads and checks only these.

    With ``images``, read the rows of these images only, a batch at a time.
    """
    schema = schema.select(columns) if columns else schema
    if images is None:
        return check_table(read_frame(path, columns), schema, path)
    frames = list(read_frames(path, columns, ROWS_PER_GROUP, images)) or [empty_table(schema)]
    return check_table(pd.concat(frames, ignore_index=True), schema, path)


def read_frame(path: str | Path, columns: list[str] | None = None) -> pd.DataFrame:
    """Read Parquet without a schema; a page that differs from its checksum raises UserError."""
    with _parquet_errors(path):
        return pd.read_parquet(path, columns=columns, page_checksum_verification=True)


def read_frames(
    path: str | Path,
    columns: list[str] | None,
    rows: int,
    images: Collection[str] | None = None,
    shard: int = 1,
    shards: int = 1,
) -> Iterator[pd.DataFrame]:
    """Yield Parquet as ``read_frame`` reads it, so many rows of a row group at a time; of them, those of ``images``.

    Shards have the same number of these frames, or one more, and read only their row groups.
    """
    with _parquet_errors(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        groups = range(file.num_row_groups) if images is None else _groups_with(file, images)
        frames = [-(-file.metadata.row_group(group).num_rows // rows) for group in groups]
        begin, end = (sum(frames) * shard // shards for shard in (shard - 1, shard))
        for group, n in zip(groups, frames, strict=True):
            if begin < n and end > 0:
                for batch in islice(file.iter_batches(rows, [group], columns), max(0, begin), end):
                    if images is not None:
                        of_image = batch["image_id"]
                        batch = batch.filter(is_in(of_image, arrow.array(images, of_image.type)))
                    yield batch.to_pandas()
            begin, end = begin - n, end - n


def _groups_with(file: pq.ParquetFile, images: Collection[str]) -> list[int]:
    """Return the row groups that may have rows of ``images``, by their least and greatest image_id."""
    place, low, high = file.schema_arrow.get_field_index("image_id"), min(images, default=""), max(images, default="")
    of_group = [file.metadata.row_group(i).column(place).statistics for i in range(file.num_row_groups)]
    return [i for i, of in enumerate(of_group) if not (of and of.has_min_max) or of.min <= high and low <= of.max]


def read_blocks(images: Sequence[str], tables: Mapping[Path, Schema]) -> Iterator[list[pd.DataFrame]]:
    """Yield each table's rows of some of ``images``, then of the next, and so on: for tables larger than memory.

    Only the columns of the schemas are read.
    """
    for start in range(0, max(1, len(images)), IMAGES_PER_BLOCK):
        block = images[start : start + IMAGES_PER_BLOCK]
        yield [read_table(path, schema, [*schema.columns], block) for path, schema in tables.items()]


def read_images(path: Path) -> pd.Series:
    """Return the images of a table, in its order."""
    frames = read_frames(path, ["image_id"], ROWS_PER_GROUP)
    images = [pd.Series(dtype="str"), *(frame["image_id"].drop_duplicates() for frame in frames)]
    return pd.concat(images, ignore_index=True).drop_duplicates()


@contextmanager
def _parquet_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:  # pandas gives only the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except (arrow.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a readable Parquet file ({reason}); delete it and run again") from error


@contextmanager
def table_writer(path: str | Path, schema: Schema) -> Iterator[Any]:
    """Yield ``write(frame)``, which checks and appends a frame: for tables larger than memory.

    The bytes are those that ``write_table`` gives the whole table.
    """
    writer: pq.ParquetWriter | None = None
    held: list[arrow.Table] = []

    def put(rows: int) -> None:
        """Write row groups until fewer than so many rows are held."""
        nonlocal writer
        while held and sum(map(len, held)) >= rows:
            table = arrow.concat_tables(held).combine_chunks()
            held[:] = [table[ROWS_PER_GROUP:]] if len(table) > ROWS_PER_GROUP else []
            writer = writer or pq.ParquetWriter(temporary, table.schema, **PARQUET)
            writer.write_table(table[:ROWS_PER_GROUP])

    with atomic(path) as temporary:

        def write(frame: pd.DataFrame) -> None:
            checked = check_table(frame, schema, path).reset_index(drop=True)
            if len(checked):
                part = arrow.Table.from_pandas(checked, preserve_index=False)
                first = writer or (held[0] if held else part)
                held.append(part.cast(first.schema))
                put(ROWS_PER_GROUP)

        try:
            yield write
            if not held and writer is None:
                held.append(arrow.Table.from_pandas(empty_table(schema), preserve_index=False))
            put(0)
        finally:
            if writer is not None:
                writer.close()


def empty_table(schema: Schema) -> pd.DataFrame:
    """Return a table without rows, with the schema's columns and dtypes."""
    return pd.DataFrame({name: pd.Series(dtype=column.dtype) for name, column in schema.columns.items()})


def safe_id(image_id: str) -> str:
    """Return ``image_id`` if it is a path that stays in its folder, maybe with ``/``; else raise UserError."""
    parts = image_id.split("/")
    bad = not image_id or any(p in ("", ".", "..") for p in parts) or "\\" in image_id or ":" in parts[0]
    if bad or any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in image_id):
        raise UserError(f"image_id {image_id!r}: not usable as a path inside a folder; rename it")
    return image_id
