"""Read and write files: atomically, with equal bytes for equal content."""

import errno
import glob
import json
import math
import os
import platform
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as pq

from compclip.core.documents import parse_json, require_folder, require_regular
from compclip.core.errors import UserError, require
from compclip.core.inputs import Made, checked
from compclip.core.records import PARQUET_READING, parquet_faults
from compclip.core.tables import Schema, version_fault

# full disk, full quota, file-size limit
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
ROWS_PER_GROUP = 1 << 15
# The rows of a table to read: from the first to the last of two images, in a table sorted by image;
# or of these images.
Images = tuple[str, str] | Collection[str]
MANIFEST_NAME = "manifest.jsonl"  # in a folder of images, the texts from which they were made


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
    for begin in range(0, len(table), ROWS_PER_GROUP):
        rows = table[begin : begin + ROWS_PER_GROUP]
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


def check_table(table: pd.DataFrame, schema: Schema, where: str | Path) -> pd.DataFrame:
    """Return ``table`` with the schema's columns in its order; raise UserError with the first
    fault.
    """
    if fault := schema.fault(table):
        raise UserError(f"{where}: {fault}")
    return table[list(schema.columns)]


def write_table(
    table: pd.DataFrame | Iterable[pd.DataFrame],
    path: str | Path,
    schema: Schema,
    rows_per_group: int | None = None,
) -> None:
    """Check a table against ``schema`` and write it as Parquet, rows in the given order.

    A table larger than memory comes in consecutive parts, each made when it is written; the bytes
    are the same.
    """
    if not isinstance(table, pd.DataFrame):
        parts = (check_table(part, schema, path) for part in chain([empty_table(schema)], table))
        return _write_parts(parts, path, rows_per_group or ROWS_PER_GROUP)
    checked = check_table(table, schema, path)
    if schema.version is not None:
        checked.attrs["schema_version"] = schema.version
    write_frame(checked, path)


def _row_groups(parts: Iterable[pd.DataFrame], size: int) -> Iterator[pa.Table]:
    """Yield the rows of all parts in whole row groups, then those left; the first part gives
    columns without rows.
    """
    rows: Any = None
    is_typed = False
    for part in parts:
        new = pa.Table.from_pandas(part, preserve_index=False)
        if not is_typed:  # a part without rows does not know the types of lists
            rows, is_typed = new, len(new) > 0
        elif len(new):
            rows = pa.concat_tables([rows, new])
        if full := len(rows) // size * size:
            yield rows.slice(0, full).combine_chunks()
            rows = rows.slice(full)
    if len(rows) or not is_typed:
        yield rows.combine_chunks()


def _write_parts(parts: Iterable[pd.DataFrame], path: str | Path, rows_per_group: int) -> None:
    with atomic(path) as temporary:
        groups = _row_groups(parts, rows_per_group)
        first = next(groups)
        with pq.ParquetWriter(temporary, first.schema, **PARQUET) as writer:
            for group in chain([first], groups):
                writer.write_table(group, rows_per_group)


def write_frame(table: pd.DataFrame, path: str | Path) -> None:
    """Write Parquet without a check, for tables that only their source defines (``scenes``)."""
    with atomic(path) as temporary:
        table.reset_index(drop=True).to_parquet(
            temporary, index=False, row_group_size=ROWS_PER_GROUP, **PARQUET
        )


def read_table(
    path: str | Path, schema: Schema, columns: list[str] | None = None, images: Images | None = None
) -> pd.DataFrame:
    """Read Parquet and check it against ``schema``; ``columns`` and ``images`` read and check only
    these.
    """
    table = read_frame(path, columns, images)
    version = table.attrs.get("schema_version")
    fault = version_fault(version, schema.version, "table")
    remedy = "make it again, or use the compclip that wrote it"
    require(version == schema.version, path, fault, remedy)
    if columns:
        schema = schema.select(columns)
    return check_table(table, schema, path)


def read_frame(
    path: str | Path, columns: list[str] | None = None, images: Images | None = None
) -> pd.DataFrame:
    """Read Parquet without a schema; a page that differs from its checksum raises UserError."""
    filters: Any = None
    if isinstance(images, tuple):
        filters = [("image_id", ">=", images[0]), ("image_id", "<=", images[1])]
    elif images is not None:
        filters = [("image_id", "in", images)]
    with parquet_faults(path, "delete it and run again"):
        return pd.read_parquet(path, columns=columns, filters=filters, **PARQUET_READING)


def image_ids(path: str | Path) -> tuple[pa.Array, int]:
    """Return the sorted distinct image_id of a table, read a few rows at a time, and its number of
    rows.
    """
    with (
        parquet_faults(path, "delete it and run again"),
        pq.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        batches = file.iter_batches(columns=["image_id"], use_threads=False)
        # Distinct in each batch first, so that few ids are in memory.
        batch_ids = [batch.column(0).unique() for batch in batches]
        ids = pa.chunked_array(batch_ids, pa.large_string()).unique()
        order = compute.sort_indices(ids)
        return ids.take(order), file.metadata.num_rows


def blocks_of(table: Path, size: int, shard: int = 1, shards: int = 1) -> list[Images | None]:
    """Return the blocks of the images of a shard, of about ``size`` rows each; None is a block of
    all.

    Tables with captions are sorted by image, so that a block is quick to find.
    """
    ids, rows = image_ids(table)
    # The shard's images are ids[begin:end].
    begin = len(ids) * (shard - 1) // shards
    end = len(ids) * shard // shards
    images = end - begin
    shard_rows = rows * images / max(len(ids), 1)
    number = max(1, math.ceil(shard_rows / size))
    if shards == number == 1:
        return [None]
    bounds = [begin + images * block // number for block in range(number + 1)]
    blocks: list[Images | None] = []
    for first, after in pairwise(bounds):
        if first < after:
            blocks.append((ids[first].as_py(), ids[after - 1].as_py()))
    return blocks


def empty_table(schema: Schema) -> pd.DataFrame:
    """Return a table without rows, with the schema's columns and dtypes."""
    columns = schema.columns.items()
    return pd.DataFrame({name: pd.Series(dtype=column.dtype) for name, column in columns})


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


@checked
def write_manifest(folder: str | Path, prompts: Made) -> None:
    """Write ``manifest.jsonl`` into a folder of images: the texts from which the images were made.

    Args:
        prompts: columns file_name and text, as in prompts.jsonl; optionally seed and status (``ok``
            or why there is no image). The file keeps its lines about other images.

    Raises:
        UserError: a text or a name is missing or blank, or a name has two rows.
    """
    file = Path(folder) / MANIFEST_NAME
    columns = [name for name in ("file_name", "text", "seed", "status") if name in prompts]
    tables = [prompts[columns]]
    if file.is_file():
        tables.insert(0, pd.read_json(file, lines=True, dtype=False))
    lines = pd.concat(tables).drop_duplicates("file_name", keep="last")
    write_text("".join(json_lines(lines)), file)
