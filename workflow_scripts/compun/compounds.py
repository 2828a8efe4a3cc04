"""Read a list of compound nouns: a text file with a noun a line, or a table with a noun a row.

In a text file (.txt), lines that begin with ``#`` are comments. A table is CSV, TSV, JSON, JSON lines or Parquet with a
column ``compound``. Optional columns are ``first`` and ``second``, its constituents (both or neither); ``kind``, which
of them its picture shows: ``either``, ``both`` or ``none``; ``n1`` and ``n2``, the nouns that the distractors show, if
they are not the constituents; ``path``, ``path_n1`` and ``path_n2``, the images, relative to the folder or archive of
images; and ``check``, in which ``split_closed`` marks the constituents that it proposes. Other columns are errors.
"""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from workflow_scripts.core.documents import decode, no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.records import read_records
from workflow_scripts.core.tables import NOUNS_SEEN, ROLES

# The column that states the image of each role.
PATHS = dict(zip(ROLES, ("path", "path_n1", "path_n2"), strict=True))
COLUMNS = ("first", "second", "kind", "n1", "n2", *PATHS.values(), "check")


def plain(text: str) -> str:
    """Return a name on one line with single spaces; an underscore counts as a space."""
    return " ".join(unicodedata.normalize("NFC", text).replace("_", " ").split())


def key(text: str) -> str:
    """Return what spellings of a name share if case and the width of spaces do not count."""
    return plain(text).casefold()


def joined(text: str) -> str:
    """Return what spellings of a compound share (``snow ball``, ``snowball``): its letters."""
    return re.sub(r"[\s-]", "", key(text))


def split_open(compound: str) -> tuple[str, str] | None:
    """Return the constituents of a compound written apart or with a hyphen, the last word as the second; else None.

    >>> split_open("grill surface thermometer")
    ('grill surface', 'thermometer')
    """
    name = plain(compound)
    first, _, second = name.rpartition(" ")
    if not first:
        first, _, second = name.rpartition("-")
    return (first, second) if first and second else None


def read_list(file: Path) -> pd.DataFrame:
    """Return a row a compound, as listed: columns ``compound`` and ``COLUMNS``, each a text or None.

    Constituents default to those of ``split_open``; n1 and n2 default to the constituents. UserError names the first
    row with a fault.
    """
    if file.suffix.lower() == ".txt":
        rows = pd.DataFrame(read_words(file), columns=["where", "compound"], dtype=object)
    else:
        rows, bad = read_records(file, ["compound"], COLUMNS, only=True)
        if bad:
            raise UserError(f"{file}: {bad[0]}; correct the row ({len(bad)} cannot be read)")
        for name in rows.columns.difference(["where"]):
            # Paths keep their underscores and spaces.
            clean = str if name in PATHS.values() else plain
            rows[name] = [None if value is None else clean(value) or None for value in rows[name]]
    rows = rows.reindex(columns=["where", "compound", *COLUMNS]).astype(object).where(lambda cells: cells.notna(), None)
    if rows.empty:
        raise UserError(f"{file}: no compounds; give one noun a line, or a table with a column 'compound'")
    seen: dict[str, str] = {}
    for row in rows.itertuples():
        where = f"{file}: {row.where}"
        if row.compound is None:
            raise UserError(f"{where}: no compound; fill it in or remove the row")
        if (row.first is None) != (row.second is None):
            raise UserError(f"{where}: {row.compound!r} has only one constituent; give first and second, or neither")
        if row.kind is not None and row.kind not in NOUNS_SEEN:
            allowed = ", ".join(NOUNS_SEEN)
            raise UserError(f"{where}: kind {row.kind!r} of {row.compound!r}; allowed: {allowed}, or empty")
        other = seen.setdefault(key(row.compound), row.where)
        if other != row.where:
            raise UserError(f"{where}: duplicate entry {row.compound!r}, first in {other}; remove one")
    parts = [
        split_open(row.compound) or (None, None) if row.first is None else (row.first, row.second)
        for row in rows.itertuples()
    ]
    rows["first"], rows["second"] = [pd.Series(side, dtype=object) for side in zip(*parts, strict=True)]
    rows["n1"] = rows["n1"].fillna(rows["first"])
    rows["n2"] = rows["n2"].fillna(rows["second"])
    return rows[["compound", *COLUMNS]].astype(object).where(rows[["compound", *COLUMNS]].notna(), None)


def two_spellings(compounds: Iterable[str]) -> list[str]:
    """Return groups such as ``snow ball, snowball`` that differ only by spaces and hyphens."""
    by: dict[str, list[str]] = {}
    for name in compounds:
        by.setdefault(joined(name), []).append(name)
    return [", ".join(names) for names in by.values() if len(names) > 1]


def read_words(file: Path) -> list[tuple[str, str]]:
    """Return the lines of a text file that are neither empty nor comments, each with its place (``line 3``)."""
    if not file.is_file():
        raise UserError(no_such(file))
    lines = ((f"line {number}", plain(line)) for number, line in enumerate(decode(file).splitlines(), 1))
    return [(where, line) for where, line in lines if line and not line.startswith("#")]
