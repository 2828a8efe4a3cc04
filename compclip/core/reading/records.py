"""Read the rows of a user's file: CSV, TSV, JSON lines, Parquet or lines ``id#n<TAB>caption``, or
of a folder of Hugging Face ``datasets``, every value as text.

Numbers written as text stay as they are (``007``). Ids (columns ``…_id``) are tidied
(``normal.tidy_id``), so that ids that look the same are equal. Lines end at ``\\n`` and ``\\r\\n``
alone: other separators of lines are white space inside a text. Rows that cannot be read are named,
with the reason, in artifacts.
"""

import ast
import csv
import errno
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.compute as compute
import pyarrow.parquet as pq

from compclip.core import limits
from compclip.core.errors import UserError, memory_for, require
from compclip.core.log import log
from compclip.core.reading.documents import (
    decode,
    nearest,
    no_such,
    parse_json,
    require_expansion,
    require_regular,
)
from compclip.core.reading.normal import INVISIBLE, tidy_id

# The first that the header has separates the cells; several tools write .csv and .txt with other
# ones than a comma.
CELL_SEPARATORS = {".csv": ",\t|;", ".tsv": "\t", ".txt": ",\t|;"}
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet", ".txt")
# Without threads: if memory is too short to start one, Arrow waits forever.
PARQUET_READING: dict[str, Any] = {
    "page_checksum_verification": True,
    "use_threads": False,
    "pre_buffer": False,
}
# Files that ``save_to_disk`` of Hugging Face datasets writes beside caches, and files in
# repositories of the Hub.
DATASETS_FILES = ("data-*.arrow", "*.parquet")
ARCHIVES = (b"PK\3\4", b"\xd0\xcf\x11\xe0")  # how .xlsx and .zip begin, and how .xls does
VALUE_BYTES = 64  # of a value in memory; in lists it is part of a Python object
TOKEN_LINE = re.compile(r"(.+)#(\d+)\t(.*)")  # of Flickr8k and Flickr30k
# A list of texts as Python or numpy prints it: pandas and ``datasets`` write it into a cell of a
# CSV file.
_LITERAL = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|None|null|nan)"""
_LITERALS = re.compile(_LITERAL)
_PRINTED = re.compile(
    rf"(?s)(?:array\()?[\[(]\s*(?:{_LITERAL}(?:(?:\s*+,\s*+|\s++){_LITERAL})*+)?\s*,?\s*[\])](?:,\s*dtype=\w+)?\)?"
)
# Lists and mappings inside a list, a mapping, a list that numpy shortened: no list of texts, and no
# text either.
_NESTED = re.compile(
    r"""(?s)[\[(]\s*(?:array\()?[\[({]\s*['"].*[\])}]|\{\s*['"].*:.*\}|[\[(]\s*['"].*['"],?\s+\.{3},?\s+['"].*[\])]"""
)
PlacedRow = tuple[str, dict[str, Any] | str]  # its place, and its values or what is wrong with it
Table = tuple[list[str], Iterable[PlacedRow]]  # names of the columns, and the rows of a file
Records = tuple[pd.DataFrame, list[str]]  # rows, and the bad rows
# Control characters except white space: mostly damage, or quotes of Windows-1252 read as Latin-1.
CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
NOT_TEXT = re.compile(f"{CONTROL.pattern}|[\ud800-\udfff]")  # or a lone surrogate


def read_records(
    path: str | Path, required: Sequence[str], optional: Sequence[str] = ()
) -> Records:
    """Return all rows, and all bad rows, as ``record_blocks`` yields them."""
    return next(record_blocks(path, required, optional))


def record_blocks(
    path: str | Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    known_as: Mapping[str, Sequence[str]] | None = None,
    several: str = "",
    size: float = math.inf,
    changed_ids: list[str] | None = None,
) -> Iterator[Records]:
    """Yield the rows of the columns ``required`` and of existing ``optional`` ones, and the bad
    rows, in blocks.

    Args:
        path: a file, or a folder of the files that Hugging Face ``datasets`` writes (Arrow or
            Parquet).
        known_as: the names that a column may have in the file; the first that it has is read.
        several: a column in which a list, or the printed form of one, has a value for each of
            several rows.
        size: rows of a block, about.
        changed_ids: a list that gets the row and the value of each id with invisible characters.

    Yields:
        A table with a text (None: no value) in each cell, and a column ``where`` that names the row
        (``line 3``, with the header as line 1; ``record 3`` if the file has no lines); and the bad
        rows (``line 3: what is wrong``).

    Raises:
        UserError: the file is missing, of another format, damaged or not UTF-8, or lacks a column.
    """
    path = Path(path)
    columns, rows = _open_table(path)
    sources = _sources(path, columns, required, optional, known_as or {})
    _log_unused(path, columns, optional, sources)
    texts: list[list[str | None]] = []
    bad_rows: list[str] = []
    for where, row in rows:
        try:
            if isinstance(row, str):
                raise ValueError(row)
            values = {name: row.get(source) for name, source in sources.items()}
            for cells in _spread(values, several):
                texts.append([where, *(_as_text(name, cell) for name, cell in cells.items())])
            if changed_ids is not None:
                changed_ids += _ids_with_invisible(where, values)
        except ValueError as error:
            bad_rows.append(f"{where}: {error}")
        if len(texts) + len(bad_rows) >= size:
            yield pd.DataFrame(texts, columns=["where", *sources], dtype=object), bad_rows
            texts = []
            bad_rows = []
    yield pd.DataFrame(texts, columns=["where", *sources], dtype=object), bad_rows


def _open_table(path: Path) -> Table:
    """Return the columns and rows of a table of any format."""
    if not path.exists():
        raise UserError(no_such(path))
    suffix = "" if path.is_dir() else path.suffix.lower()
    is_format = path.is_dir() or suffix in FORMATS
    formats = ", ".join(FORMATS)
    require(is_format, path, f"unknown format {suffix!r}", f"allowed: {formats}")
    readers = {".jsonl": _json_lines, ".parquet": _arrow, ".txt": _token_lines, "": _arrow}
    return readers.get(suffix, _csv)(path, suffix)


def first_rows(path: str | Path, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns of a table, and its first rows that can be read, at most ``count``."""
    columns, rows = _open_table(Path(path))
    readable = (row for _, row in islice(rows, count) if isinstance(row, dict))
    return columns, list(readable)


def looks_like_row(names: Sequence[str]) -> bool:
    """Return whether what should be names of columns has an image file, or a number beside a
    sentence.
    """
    has_image = any(name.lower().endswith(limits.IMAGE_SUFFIXES) for name in names)
    # Tables that pandas writes may have numbers as names of all columns.
    has_sentence = any(len(name.split()) > 3 for name in names)
    return has_image or (has_sentence and any(name.isdecimal() for name in names))


def _sources(
    path: Path,
    columns: Sequence[str],
    required: Sequence[str],
    optional: Sequence[str],
    known_as: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """Return the column of the file that has each wanted column's values."""
    if len(set(columns)) < len(columns):
        duplicate = next(name for name in columns if columns.count(name) > 1)
        raise UserError(f"{path}: duplicate column {duplicate[:40]!r}; remove one")
    shown = ", ".join(map(repr, columns[:20]))[:400] or "none"
    sources: dict[str, str] = {}
    for name in (*required, *optional):
        names = known_as.get(name, (name,))
        present = [alias for alias in names if alias in columns]
        hint = nearest(names[0], columns)
        fault = f"no column {names[0]!r}; {hint}its columns: {shown}"
        if looks_like_row(columns):
            fault = f"no header: its first line is {shown}; write the names of its columns above"
        require(present or name not in required, path, fault)
        if present:
            sources[name] = present[0]
    return sources


def _log_unused(
    path: Path, columns: Sequence[str], optional: Sequence[str], sources: Mapping[str, str]
) -> None:
    """Name the columns that are not read; a warning if one may be a misspelled optional column."""
    for name in sorted({*columns}.difference(sources.values())):
        hint = nearest(name, {*optional}.difference(sources))
        if hint:
            log.warning("%s: column %r is not used; %s", path, name, hint.strip())
        else:
            log.info("%s: column %r is not used", path, name)


def _ids_with_invisible(where: str, values: Mapping[str, Any]) -> list[str]:
    """Return a line for each id with invisible characters, which ``_as_text`` removes."""
    return [
        f"{where}: {name} {value!a}"
        for name, value in values.items()
        if name.endswith("_id") and INVISIBLE.search(str(value))
    ]


def _spread(row: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a row for each value of a list in column ``name``; the row itself if there is no
    list.
    """
    values = _listed(row.get(name))
    if not isinstance(values, list):
        return [row]
    # Of an empty list, a row without a value remains, to be named.
    return [row | {name: value} for value in values or [None]]


def _listed(cell: Any) -> Any:
    """Return the texts of a cell that is the printed form of a list, by JSON, Python or numpy; else
    the cell.
    """
    if not isinstance(cell, str):
        return cell
    with suppress(ValueError, SyntaxError):
        if _PRINTED.fullmatch(cell.strip()):
            literals = [found for found in _LITERALS.findall(cell) if found[0] in "'\""]
            texts = map(ast.literal_eval, literals)
            # JSON writes some characters as two surrogates.
            return [text.encode("utf-16", "surrogatepass").decode("utf-16") for text in texts]
    if _NESTED.fullmatch(cell.strip()):
        raise ValueError(f"{cell[:40]!a} is neither a text nor a whole list of texts")
    return cell


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file with their ends, which are not translated.

    Lines end at ``\\n`` and ``\\r\\n``; if the file has none, as of old Macs, at ``\\r``, which is
    else white space.
    """
    require_regular(path)
    with path.open("rb") as opened:
        first = opened.readline(2 * limits.CELL)
    is_archive = first.startswith(ARCHIVES)
    fault = "is an Excel workbook or a ZIP archive, not text"
    require(not is_archive, path, fault, "export it as CSV in UTF-8")
    is_utf8 = b"\0" not in first[:4]
    require(is_utf8, path, "is UTF-16 or UTF-32, not UTF-8", "save the file as UTF-8")
    newline = "\n" if first.endswith(b"\n") else ""
    try:
        with path.open(encoding="utf-8-sig", newline=newline) as file:
            for line in file:
                yield re.sub("\r(?!\n|\\Z)", " ", line.lstrip("\ufeff"))
    except UnicodeDecodeError:
        decode(path)  # names the line
        raise


def _token_lines(path: Path, suffix: str) -> Table:
    """Read lines ``image.jpg#0<TAB>caption``; or a table, as several data sets are distributed,
    with a header.
    """
    header = next(_lines(path), "")
    has_separator = any(separator in header for separator in CELL_SEPARATORS[suffix])
    if "#" not in header and has_separator:
        return _csv(path, suffix)
    return ["image_id", "caption_id", "caption"], _token_rows(path)


def _token_rows(path: Path) -> Iterator[PlacedRow]:
    for number, line in enumerate(_lines(path), 1):
        text = line.rstrip("\r\n")
        if not text:
            continue
        match = TOKEN_LINE.fullmatch(text)
        if match:
            image_id, caption_id, caption = match.groups()
            row = {"image_id": image_id, "caption_id": caption_id, "caption": caption}
            yield f"line {number}", row
        else:
            yield f"line {number}", "not id#number<TAB>caption"


def is_count(values: pd.Series) -> pd.Series:
    """Return which texts are integers of at most ``COUNT_DIGITS`` digits."""
    return values.fillna("").str.fullmatch(rf"\d{{1,{limits.COUNT_DIGITS}}}")


def _as_text(name: str, value: Any) -> str | None:
    """Return a cell as text, None for a missing value; whole numbers have no decimal point.

    Raises:
        ValueError: the cell is not a text, or a number that may have lost digits.
    """
    if isinstance(value, str):
        control = NOT_TEXT.search(value)
        if control:
            raise ValueError(f"{name} contains the control character U+{ord(control[0]):04X}")
        return tidy_id(value) if name.endswith("_id") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a text")
    if isinstance(value, int) or not math.isfinite(value) or value != int(value):
        return str(value)
    if abs(value) >= limits.EXACT_FLOAT:
        raise ValueError(
            f"{name} is {value!r}, a floating-point number that may have lost digits; write it as "
            "text"
        )
    return str(int(value))


def _csv(path: Path, suffix: str) -> Table:
    """Read CSV with the standard library: pandas reads a row with too few cells as one with empty
    cells.
    """
    first_line = next(_lines(path), "")
    separators = CELL_SEPARATORS[suffix]
    # The header decides: captions may contain the other separators.
    present = [separator for separator in separators if separator in first_line]
    rows = _csv_rows(path, (present or separators)[0])
    _, names = next(rows, (1, []))
    require(names, path, "is empty", "write it again")
    columns = [tidy_id(name) for name in names]
    return columns, _named_cells(columns, rows)


def _named_cells(
    columns: Sequence[str], rows: Iterable[tuple[int, list[str]]]
) -> Iterator[PlacedRow]:
    for line, cells in rows:
        if len(cells) == len(columns):
            yield f"line {line}", dict(zip(columns, cells, strict=True))
        else:
            fault = f"{len(cells)} values, the header has {len(columns)} columns"
            yield f"line {line}", fault


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    """Return the next row, None at the end; the limit of a cell is one of the process, which has
    its own again.
    """
    limit_of_process = csv.field_size_limit(limits.CELL)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit_of_process)


def _csv_rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with its first line."""
    reader = csv.reader(_lines(path), delimiter=separator, strict=True)
    line = 1
    try:
        for row in iter(lambda: _next_row(reader), None):
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        decode(path)  # if the file is not UTF-8, that is the error
        raise UserError(f"{path}: from line {line}: {error}; correct the quotes there") from error


@contextmanager
def parquet_faults(path: str | Path, remedy: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn errors of Arrow into UserErrors that name the file; errors for lack of memory say so."""
    try:
        with memory_for(path):
            yield
    except FileNotFoundError as error:  # pandas gives only the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except (arrow.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a readable {kind} file ({reason}); {remedy}") from error


def check_expansion(path: Path) -> None:
    """Raise UserError unless a Parquet table has a bounded size in memory.

    Run lengths and dictionaries expand without limit. Here dictionaries stay dictionaries, so the
    table's size is known before it is expanded.
    """
    with parquet_faults(path, "do not trust it"):
        metadata = pq.read_metadata(path)
        numbers = product(range(metadata.num_row_groups), range(metadata.num_columns))
        chunks = [metadata.row_group(group).column(column) for group, column in numbers]
        fixed = [chunk for chunk in chunks if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY"]
        fault = "has values of a fixed number of bytes, which no table of compclip has"
        require(not fixed, path, fault)
        size = 0
        for chunk in chunks:
            # Run lengths: many equal values may take no space in the file.
            size += max(chunk.total_uncompressed_size, VALUE_BYTES * chunk.num_values)
        require_expansion(path, size)
        texts = {chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"}
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            # Arrow cannot read dictionaries in lists across groups of rows.
            for group in range(metadata.num_row_groups):
                for batch in file.iter_batches(row_groups=[group], use_threads=False):
                    size += sum(map(_expanded, batch.columns))
                    require_expansion(path, size)


def _expanded(values: Any) -> int:
    """Return the bytes of all texts in an array, if each is written out; its texts are
    dictionaries.
    """
    if isinstance(values, arrow.DictionaryArray):
        lengths = compute.binary_length(values.dictionary).cast(arrow.int64())
        return compute.sum(lengths.take(values.indices)).as_py() or 0
    # Lists have one array of items, structs have a list of arrays.
    inner = values.flatten() if hasattr(values, "flatten") else []
    arrays = inner if isinstance(inner, list) else [inner]
    return sum(map(_expanded, arrays))


def _arrow(path: Path, suffix: str) -> Table:
    """Read a Parquet file, or all files of Hugging Face ``datasets`` in a folder, one after
    another.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for name in DATASETS_FILES for file in path.rglob(name))
    fault = f"a folder without {' and '.join(DATASETS_FILES)}"
    require(files, path, fault, "give a file, or a folder that Hugging Face datasets has written")
    top = path if path.is_dir() else path.parent
    file_by_name = {file.relative_to(top).with_suffix("").as_posix(): file for file in files}
    columns: dict[str, None] = {}
    for name, file in file_by_name.items():
        first_batch = next(_arrow_batches(name, file))
        columns |= dict.fromkeys(first_batch.schema.names)
    return [*columns], _arrow_rows(file_by_name, path.is_dir())


def _arrow_rows(file_by_name: Mapping[str, Path], is_folder: bool) -> Iterator[PlacedRow]:
    for name, file in file_by_name.items():
        prefix = f"{name}: record" if is_folder else "record"
        number = 0
        for batch in _arrow_batches(name, file):
            for row in batch.to_pylist():
                number += 1
                yield f"{prefix} {number}", row


def _arrow_batches(name: str, path: Path) -> Iterator[arrow.RecordBatch]:
    """Yield no rows, then some rows of a Parquet file or an Arrow stream at a time, without columns
    of bytes.

    Images, as ``datasets`` writes them, become their paths, or ``name`` and the row of those
    without a path.
    """
    begin = 0
    with parquet_faults(path, "write it again", path.suffix[1:].capitalize()):
        for batch in _all_columns(path):
            rows = _with_paths(batch, name, begin)
            begin += len(batch)
            columns = [field for field in rows.schema if not arrow.types.is_binary(field.type)]
            texts = rows.select([field.name for field in columns])
            texts.validate(full=True)
            yield texts


def _with_paths(batch: arrow.RecordBatch, name: str, begin: int) -> arrow.RecordBatch:
    """Return a batch whose images are their paths; its first row has the number ``begin``."""
    rows = batch
    for index, column in enumerate(batch.schema):
        if _is_image(column):
            paths = compute.struct_field(batch[index], "path").cast(arrow.string())
            numbers = range(begin, begin + len(batch))
            names = arrow.array([f"{name}_{n:06d}" for n in numbers], arrow.string())
            rows = rows.set_column(index, column.name, compute.coalesce(paths, names))
    return rows


def _all_columns(path: Path) -> Iterator[arrow.RecordBatch]:
    if path.suffix.lower() == ".parquet":
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
            yield arrow.RecordBatch.from_pylist([], file.schema_arrow)
            # Images' bytes are not read, only their paths.
            columns = [
                f"{field.name}.path" if _is_image(field) else field.name
                for field in file.schema_arrow
            ]
            size = 0
            for batch in file.iter_batches(1000, columns=columns, use_threads=False):
                size += batch.nbytes
                require_expansion(path, size)
                yield batch
    else:
        with arrow.ipc.open_stream(arrow.memory_map(str(path))) as stream:  # images stay on disk
            yield arrow.RecordBatch.from_pylist([], stream.schema)
            for batch in stream:
                yield from (batch.slice(begin, 1000) for begin in range(0, len(batch), 1000))


def _is_image(column: arrow.Field) -> bool:
    """Return whether a column has the type of images in ``datasets``: bytes and path."""
    return arrow.types.is_struct(column.type) and column.type.get_field_index("path") >= 0


def _json_lines(path: Path, suffix: str) -> Table:
    """Read one object per line; pandas would keep the last of duplicate keys and lose digits of
    large numbers.
    """
    keys = dict.fromkeys(key for _, row in _json_rows(path) if isinstance(row, dict) for key in row)
    return [*keys], _json_rows(path)


def _json_rows(path: Path) -> Iterator[PlacedRow]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                row = parse_json(line)
                yield f"line {number}", row if isinstance(row, dict) else "not an object"
            except ValueError as error:
                yield f"line {number}", f"not JSON ({error})"
