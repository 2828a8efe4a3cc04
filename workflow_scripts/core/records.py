"""Read the rows of a user's file: CSV, TSV, JSON, JSON lines or Parquet, every value as text.

Numbers written as text stay as they are (``007``). Ids (columns ``…_id``) are stripped and NFC-normalised, so that
those that look alike are equal. A row that cannot be read is named; what is said of it is written to artifacts.
"""

import csv
import io
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq

from workflow_scripts.core import limits
from workflow_scripts.core.documents import decode, no_such, parse_json
from workflow_scripts.core.errors import UserError

FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
BEGINNING = 1 << 22  # bytes of a file, of which only some rows are read
_SURROGATE = re.compile("[\ud800-\udfff]")
# All but white space; most are damage, or quotes of Windows-1252 read as Latin-1.
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
Row = tuple[str, dict[str, Any] | str]  # its place, and its values or what is wrong with it


def read_records(
    path: str | Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    *,
    only: bool = False,
    most: int | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Read the columns ``required``, and those of ``optional`` that the file has.

    Args:
        only: refuse any other column, so that a misspelled optional column is noticed.
        most: read only so many rows, of a large file its beginning.

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
    if suffix not in FORMATS:
        raise UserError(f"{path}: unknown format {suffix!r}; allowed: {', '.join(FORMATS)}")
    columns, rows = _parquet(path, most) if suffix == ".parquet" else _text(path, suffix, most)
    absent = [name for name in required if name not in columns]
    if absent:
        known = ", ".join(map(repr, columns[:20])) or "none"
        raise UserError(f"{path}: no column {absent[0]!r}; its columns: {known[:400]}{_separator(columns, suffix)}")
    unknown = [name for name in columns if only and name not in (*required, *optional)]
    if unknown:
        raise UserError(f"{path}: unknown column {unknown[0]!r}; allowed: {', '.join((*required, *optional))}")
    names = [*required, *(name for name in optional if name in columns)]
    cells: dict[str, list[str | None]] = {name: [] for name in ["where", *names]}
    bad = []
    for where, row in islice(rows, most):
        try:
            values = [_as_text(name, row.get(name)) for name in names] if isinstance(row, dict) else row
        except ValueError as error:
            values = str(error)
        if isinstance(values, str):
            bad.append(f"{where}: {values}")
            continue
        for name, value in zip(cells, [where, *values], strict=True):
            cells[name].append(value)
    return pd.DataFrame(cells, dtype=object), bad


def tidy_id(value: str) -> str:
    """Return an id without white space around it, in Unicode's composed form, which macOS decomposes in file names."""
    return unicodedata.normalize("NFC", value).strip()


def _as_text(name: str, value: Any) -> str | None:
    """Return a cell as text, None for no value, whole numbers without a fraction.

    Raises:
        ValueError: the cell is nested, too long, no text, or a number that may have lost digits.
    """
    if isinstance(value, str):
        if len(value) > limits.CELL:
            raise ValueError(limits.over("CELL", f"{name} has {len(value):,} characters"))
        if _SURROGATE.search(value):
            raise ValueError(f"{name} holds half a character")
        if control := CONTROL.search(value):
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


def _separator(columns: Sequence[str], suffix: str) -> str:
    """Return a hint for an error if the only column of a CSV file looks like several."""
    expected = {".csv": ",", ".tsv": "\t"}.get(suffix)
    other = next((c for c in ";\t,|" if len(columns) == 1 and c in columns[0]), None)
    return f"; the separator seems to be {other!r}, expected {expected!r}" if expected and other else ""


def _parquet(path: Path, most: int | None) -> tuple[list[str], Iterator[Row]]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            batches = file.read().to_batches() if most is None else [*islice(file.iter_batches(most), 1)]
    except (arrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a readable Parquet file ({reason}); write it again") from error
    _check_columns(path, names)
    rows = (row for batch in batches for row in batch.to_pylist())
    return names, ((f"record {number}", row) for number, row in enumerate(rows, 1))


def csv_rows(path: Path, text: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not empty, each with the number of its first line."""
    csv.field_size_limit(limits.CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = f"a cell exceeds {limits.limit('CELL')} characters" if "field limit" in str(error) else str(error)
            raise UserError(f"{path}: from line {line}: {fault}; correct the quotes there") from error
        if row:
            yield line, row


def _text(path: Path, suffix: str, most: int | None) -> tuple[list[str], Iterator[Row]]:
    # JSON is valid only as a whole.
    text = decode(path, None if most is None or suffix == ".json" else BEGINNING)
    if suffix in (".csv", ".tsv"):
        return _csv(path, text, "\t" if suffix == ".tsv" else ",")
    rows = _json(path, text) if suffix == ".json" else _json_lines(text)
    return list(dict.fromkeys(key for _, row in rows if isinstance(row, dict) for key in row)), iter(rows)


def _csv(path: Path, text: str, delimiter: str) -> tuple[list[str], Iterator[Row]]:
    lines = csv_rows(path, text, delimiter)
    _, first = next(lines, (1, []))
    header = [name.strip() for name in first]
    _check_columns(path, header)

    def rows() -> Iterator[Row]:
        for line, row in lines:
            if len(row) == len(header):
                yield f"line {line}", dict(zip(header, row, strict=True))
            else:
                yield f"line {line}", f"{len(row)} values, the header has {len(header)} columns"

    return header, rows()


def _check_columns(path: Path, names: Sequence[str]) -> None:
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise UserError(f"{path}: duplicate column {duplicates[0][:40]!r}; remove one")


def _json(path: Path, text: str) -> list[Row]:
    try:
        content = parse_json(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error}); a file with one object per line must end with .jsonl") from error
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error
    if not isinstance(content, list):
        raise UserError(f"{path}: expected a list of objects, one for each row")
    return [(f"record {n}", row if isinstance(row, dict) else "is no object") for n, row in enumerate(content, 1)]


def _json_lines(text: str) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
            row = row if isinstance(row, dict) else "is no object"
        except ValueError as error:
            row = f"not JSON ({error})"
        rows.append((f"line {number}", row))
    return rows
