"""Write and read tables as Parquet, with equal bytes for equal rows."""

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as pq

from compclip.core.artifacts.files import atomic
from compclip.core.errors import UserError, require
from compclip.core.reading.records import PARQUET_READING, parquet_faults
from compclip.core.tables import Schema, version_fault

PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
ROWS_PER_GROUP = 1 << 15
# The rows of a table to read: from the first to the last of two images, in a table sorted by image;
# or of these images.
ImageRange = tuple[str, str] | Collection[str]


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
    path: str | Path,
    schema: Schema,
    columns: list[str] | None = None,
    images: ImageRange | None = None,
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
    path: str | Path, columns: list[str] | None = None, images: ImageRange | None = None
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


def blocks_of(table: Path, size: int, shard: int = 1, shards: int = 1) -> list[ImageRange | None]:
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
    blocks: list[ImageRange | None] = []
    for first, after in pairwise(bounds):
        if first < after:
            blocks.append((ids[first].as_py(), ids[after - 1].as_py()))
    return blocks


def empty_table(schema: Schema) -> pd.DataFrame:
    """Return a table without rows, with the schema's columns and dtypes."""
    columns = schema.columns.items()
    return pd.DataFrame({name: pd.Series(dtype=column.dtype) for name, column in columns})
