"""A list of compound nouns: a text file with a noun a line, or a table with a noun a row.

A text file (.txt) may have lines that begin with ``#``. A table is CSV, TSV, JSON, JSON lines or Parquet with a column
``compound``; optional are ``first`` and ``second``, its constituents, both or neither; ``kind``, what its picture shows
of them: ``either``, ``both`` or ``none``; ``n1`` and ``n2``, the nouns that the distractors show, where they are not
the constituents; ``path``, ``path_n1`` and ``path_n2``, the images, relative to the folder or archive of images; and
``check``, in which ``split_closed`` marks the constituents that it proposes. Another column is an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.records import read_records
from workflow_scripts.core.tables import NOUNS_SEEN, ROLES

# The column that states the image of each role.
PATHS = dict(zip(ROLES, ("path", "path_n1", "path_n2"), strict=True))
COLUMNS = ("first", "second", "kind", "n1", "n2", *PATHS.values(), "check")


def plain(text: str) -> str:
    """A name on one line, its words one space apart; an underscore is a space."""
    return " ".join(unicodedata.normalize("NFC", text).replace("_", " ").split())


def key(text: str) -> str:
    """What two ways to write one name share: case and the width of spaces do not count."""
    return plain(text).casefold()


def joined(text: str) -> str:
    """What two spellings of one compound share (``snow ball``, ``snowball``): its letters."""
    return re.sub(r"[\s-]", "", key(text))


def split_open(compound: str) -> tuple[str, str] | None:
    """The constituents of a compound written apart or with a hyphen; the second is the last word. None: it is closed.

    >>> split_open("grill surface thermometer")
    ('grill surface', 'thermometer')
    """
    name = plain(compound)
    first, _, second = name.rpartition(" ")
    if not first:
        first, _, second = name.rpartition("-")
    return (first, second) if first and second else None


def read_list(file: Path) -> pd.DataFrame:
    """A row a compound, as listed: columns ``compound`` and ``COLUMNS``, a text or None each.

    Constituents that are not stated are those of ``split_open``; n1 and n2 that are not stated are the constituents.
    Raises UserError as ``read_records``, and for a list without compounds, an unknown column, a row that cannot be
    read or states no compound, one constituent alone or an unknown kind, and a compound that stands twice.
    """
    rows = _lines(file) if file.suffix.lower() == ".txt" else _table(file)
    if rows.empty:
        raise UserError(f"{file}: no compounds: give a noun a line, or a table with a column 'compound'")
    seen: dict[str, str] = {}
    for row in rows.itertuples():
        where = f"{file}: {row.where}"
        if row.compound is None:
            raise UserError(f"{where}: no compound: fill it in or take the row out")
        if (row.first is None) != (row.second is None):
            raise UserError(f"{where}: {row.compound!r} has one constituent alone: give first and second, or neither")
        if row.kind is not None and row.kind not in NOUNS_SEEN:
            raise UserError(
                f"{where}: kind {row.kind!r} of {row.compound!r}; allowed: {', '.join(NOUNS_SEEN)}, or empty"
            )
        other = seen.setdefault(key(row.compound), row.where)
        if other != row.where:
            raise UserError(f"{where}: {row.compound!r} is listed already in {other}: keep one")
    parts = [
        split_open(row.compound) or (None, None) if row.first is None else (row.first, row.second)
        for row in rows.itertuples()
    ]
    rows["first"], rows["second"] = [pd.Series(side, dtype=object) for side in zip(*parts, strict=True)]
    rows["n1"] = rows["n1"].fillna(rows["first"])
    rows["n2"] = rows["n2"].fillna(rows["second"])
    return rows[["compound", *COLUMNS]].astype(object).where(rows[["compound", *COLUMNS]].notna(), None)


def two_spellings(compounds: Iterable[str]) -> list[str]:
    """``snow ball, snowball`` for those that differ by spaces and hyphens alone."""
    by: dict[str, list[str]] = {}
    for name in compounds:
        by.setdefault(joined(name), []).append(name)
    return [", ".join(names) for names in by.values() if len(names) > 1]


def read_words(file: Path) -> list[tuple[str, str]]:
    """The lines of a text file that hold something and do not begin with ``#``, and where each is (``line 3``)."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{file}: no such file") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{file}: line {line}: not UTF-8: save the file as UTF-8") from error
    lines = ((f"line {number}", plain(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(where, line) for where, line in lines if line and not line.startswith("#")]


def _lines(file: Path) -> pd.DataFrame:
    rows = pd.DataFrame(read_words(file), columns=["where", "compound"], dtype=object)
    return rows.reindex(columns=["where", "compound", *COLUMNS]).astype(object).where(lambda cells: cells.notna(), None)


def _table(file: Path) -> pd.DataFrame:
    rows, bad = read_records(file, ["compound"], COLUMNS, only=True)
    if bad:
        raise UserError(f"{file}: {bad[0]}: mend the row ({len(bad)} cannot be read)")
    # A path may hold underscores and spaces of its own.
    for name in rows.columns.difference(["where", *PATHS.values()]):
        rows[name] = [None if value is None else plain(value) or None for value in rows[name]]
    for name in rows.columns.intersection([*PATHS.values()]):
        rows[name] = [value or None for value in rows[name]]
    return rows.reindex(columns=["where", "compound", *COLUMNS]).astype(object).where(lambda cells: cells.notna(), None)
