"""Read the rows of a user's file: CSV, TSV, JSON lines, Parquet or lines ``id#n<TAB>caption``, every value as text.

Numbers written as text stay as they are (``007``). Ids (columns ``…_id``) are stripped and NFC-normalised, so that
those that look alike are equal. A row that cannot be read is named; what is said of it is written to artifacts.
"""

import csv
import io
import logging
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq

from compclip.core import limits
from compclip.core.documents import decode, nearest, no_such, parse_json
from compclip.core.errors import UserError, memory_for, require
from compclip.core.log import log

CELL_SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMATS = (*CELL_SEPARATORS, ".jsonl", ".parquet", ".txt")
TOKEN_LINE = re.compile(r"(.+)#(\d+)\t(.*)")  # of Flickr8k and Flickr30k
PlacedRow = tuple[str, dict[str, Any] | str]  # its place, and its values or what is wrong with it
# All but white space; most are damage, or quotes of Windows-1252 read as Latin-1.
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_NOT_TEXT = re.compile(f"{CONTROL.pattern}|[\ud800-\udfff]")  # or half a character


def read_records(
    path: str | Path, required: Sequence[str], optional: Sequence[str] = (), aliases: Mapping[str, str] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Read the columns ``required``, and those of ``optional`` that the file has; ``aliases`` are other names of them.

    Returns:
        A table with a text (None: no value) in each cell, and a column ``where`` that names the row (``line 3``, with
        the header as line 1; ``record 3`` if the file has no lines); and the bad rows (``line 3: what is wrong``).

    Raises:
        UserError: the file is missing, of another format, damaged or not UTF-8, or lacks a column.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(no_such(path))
    suffix = path.suffix.lower()
    require(suffix in FORMATS, path, f"unknown format {suffix!r}", f"allowed: {', '.join(FORMATS)}")
    readers = {".jsonl": _json_lines, ".parquet": _parquet, ".txt": _token_lines}
    given, rows = readers.get(suffix, _csv)(path, suffix)
    renamed = {alias: name for alias, name in (aliases or {}).items() if name not in given}
    columns = [renamed.get(name, name) for name in given]
    if len(set(columns)) < len(columns):
        duplicate = next(name for name in columns if columns.count(name) > 1)
        raise UserError(f"{path}: duplicate column {duplicate[:40]!r}; remove one")
    known = ", ".join(map(repr, given[:20]))[:400] or "none"
    for name in required:
        require(name in columns, path, f"no column {name!r}; {nearest(name, given)}its columns: {known}")
    names = [*required, *(name for name in optional if name in columns)]
    for name in sorted({*columns}.difference(names)):
        meant = nearest(name, {*optional}.difference(columns))
        level = logging.WARNING if meant else logging.INFO
        log.log(level, "%s: column %r is not used%s", path, name, f"; {meant.strip()}" if meant else "")
    cells, bad = list[list[str | None]](), list[str]()
    for place, row in rows:
        try:
            if isinstance(row, str):
                raise ValueError(row)
            row = {renamed.get(name, name): value for name, value in row.items()}
            cells.append([place, *(_as_text(name, row.get(name)) for name in names)])
        except ValueError as error:
            bad.append(f"{place}: {error}")
    return pd.DataFrame(cells, columns=["where", *names], dtype=object), bad


def _token_lines(path: Path, suffix: str) -> tuple[list[str], Iterable[PlacedRow]]:
    """Read lines ``image.jpg#0<TAB>caption``."""
    names = ["image_id", "caption_id", "caption"]
    lines = ((number, TOKEN_LINE.fullmatch(line)) for number, line in enumerate(decode(path).splitlines(), 1) if line)
    return names, (
        (f"line {number}", dict(zip(names, match.groups(), strict=True)) if match else "not id#number<TAB>caption")
        for number, match in lines
    )


def is_count(values: pd.Series) -> pd.Series:
    """Return which texts are whole numbers, none of them too long."""
    return values.fillna("").str.fullmatch(rf"\d{{1,{limits.COUNT_DIGITS}}}")


def tidy_id(value: str) -> str:
    """Return an id without white space around it, in Unicode's composed form, which macOS decomposes in file names."""
    return unicodedata.normalize("NFC", value).strip()


def _as_text(name: str, value: Any) -> str | None:
    """Return a cell as text, None for no value, whole numbers without a fraction.

    Raises:
        ValueError: the cell is not a text, or a number that may have lost digits.
    """
    if isinstance(value, str):
        if control := _NOT_TEXT.search(value):
            raise ValueError(f"{name} contains the control character U+{ord(control[0]):04X}")
        return tidy_id(value) if name.endswith("_id") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a text")
    if isinstance(value, int) or not math.isfinite(value) or value != int(value):
        return str(value)
    if abs(value) >= limits.EXACT_FLOAT:
        raise ValueError(f"{name} is {value!r}, a floating-point number that may have lost digits; write it as text")
    return str(int(value))


def _csv(path: Path, suffix: str) -> tuple[list[str], Iterable[PlacedRow]]:
    """Read CSV with the standard library: pandas reads a row with too few cells as one with empty cells."""
    csv.field_size_limit(limits.CELL)
    reader = csv.reader(io.StringIO(decode(path), newline=""), delimiter=CELL_SEPARATORS[suffix], strict=True)
    rows, line = list[tuple[int, list[str]]](), 1
    try:
        for row in reader:
            rows += [(line, row)] if row else []
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}: from line {line}: {error}; correct the quotes there") from error
    header = [name.strip() for name in rows.pop(0)[1]] if rows else []
    fault = f"values, the header has {len(header)} columns"
    return header, (
        (f"line {line}", dict(zip(header, row, strict=True)) if len(row) == len(header) else f"{len(row)} {fault}")
        for line, row in rows
    )


def _parquet(path: Path, suffix: str) -> tuple[list[str], Iterable[PlacedRow]]:
    try:
        with memory_for(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
            groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
            size = sum(group.total_byte_size for group in groups)
            most = max(limits.ARCHIVE_RATIO * path.stat().st_size, limits.ARCHIVE_SMALL_BYTES)
            require(size <= most, path, f"unpacks to over {limits.ARCHIVE_RATIO} times its size", "do not trust it")
            table = file.read(use_threads=False)
    except (arrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a readable Parquet file ({reason}); write it again") from error
    return table.column_names, ((f"record {number}", row) for number, row in enumerate(table.to_pylist(), 1))


def _json_lines(path: Path, suffix: str) -> tuple[list[str], Iterable[PlacedRow]]:
    """Read an object a line: pandas would keep the last of duplicate keys, and lose digits of large numbers."""
    rows = list[PlacedRow]()
    for number, line in enumerate(decode(path).split("\n"), 1):
        if line.strip():
            try:
                row = parse_json(line)
                rows.append((f"line {number}", row if isinstance(row, dict) else "not an object"))
            except ValueError as error:
                rows.append((f"line {number}", f"not JSON ({error})"))
    return list(dict.fromkeys(key for _, row in rows if isinstance(row, dict) for key in row)), rows
