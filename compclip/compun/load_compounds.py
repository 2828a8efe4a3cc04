"""Read compound nouns and three images of each: of the compound, and of each of its two nouns.

The list is a table with the column compound and, optionally, first, second, kind (either, both,
none), n1 and n2. The images are named after the compound (``snow ball.jpg``), with ``_n1`` and
``_n2`` for the two nouns. A compound is incomplete if an image is missing or broken.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from compclip.core.errors import require
from compclip.core.limits import IMAGE_SUFFIXES
from compclip.core.log import log
from compclip.core.reading.pictures import BrokenImage, image_size
from compclip.core.reading.records import read_records
from compclip.core.tables import COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, ROLES
from compclip.dataset.source import named

# `snow ball_n1`: an image of the first noun.
DISTRACTOR = re.compile(r"(.+)_(n[12])", re.IGNORECASE)
OPTIONAL_COLUMNS = ("first", "second", "kind", "n1", "n2")
NAMES_LOGGED = 3  # of each warning; the summary has more


def tidy_name(text: str) -> str:
    """Return a name on one line with single spaces; an underscore counts as a space."""
    return " ".join(unicodedata.normalize("NFC", text).replace("_", " ").split())


def name_key(text: str) -> str:
    """Return a key of a name that ignores case and the width of spaces."""
    return tidy_name(text).casefold()


def name_letters(text: str) -> str:
    """Return a key of a compound that its spellings share (``snow ball``, ``snowball``): its
    letters.
    """
    return re.sub(r"[\s-]", "", name_key(text))


def split_open(compound: str) -> tuple[str, str] | tuple[None, None]:
    """Return the constituents of a compound written with a space or a hyphen; the last word is the
    second one.

    >>> split_open("grill surface thermometer")
    ('grill surface', 'thermometer')
    """
    first, _, second = compound.rpartition(" " if " " in compound else "-")
    if not first or not second:
        return None, None
    return first, second


def read_list(file: Path) -> pd.DataFrame:
    """Return a row for each compound: columns ``compound`` and ``OPTIONAL_COLUMNS``, texts or None.

    Constituents default to ``split_open``; n1 and n2, the nouns that the distractors show, to the
    constituents. UserError names the first row with a fault.
    """
    table, bad = read_records(file, ["compound"], OPTIONAL_COLUMNS)
    require(not bad, file, bad[0] if bad else "", "correct the row")
    require(len(table), file, "no compounds", "give a table with a column 'compound'")
    rows: dict[str, dict[str, str | None]] = {}
    for record in table.to_dict("records"):
        location = f"{file}: {record['where']}"
        row = _read_row(record, location)
        name = row["compound"] or ""
        key = name_key(name)
        require(key not in rows, location, f"duplicate entry {name!r}", "remove one")
        rows[key] = row
    return pd.DataFrame(list(rows.values()), dtype=object)


def _read_row(record: dict[str, Any], location: str) -> dict[str, str | None]:
    row: dict[str, str | None] = {}
    for column in ("compound", *OPTIONAL_COLUMNS):
        row[column] = tidy_name(record.get(column) or "") or None
    require(row["compound"], location, "no compound", "fill it in or remove the row")
    has_one = (row["first"] is None) != (row["second"] is None)
    fault = "only one of first and second is given"
    require(not has_one, location, fault, "give both or neither")
    is_kind = row["kind"] in (None, *NOUNS_SEEN)
    require(is_kind, location, f"kind {row['kind']!r}", f"use {', '.join(NOUNS_SEEN)}")
    if row["first"] is None:
        row["first"], row["second"] = split_open(row["compound"] or "")
    row["n1"] = row["n1"] or row["first"]
    row["n2"] = row["n2"] or row["second"]
    return row


def match_images(compounds: Sequence[str], names: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the image file of each compound and role, if there is one; the first of several.

    Equal spellings match first, then spellings that differ only in spaces and hyphens, if they fit
    one compound only.
    """
    compound_by_name = {name_key(compound): compound for compound in compounds}
    spellings = Counter(map(name_letters, compounds))
    compound_by_letters = {}
    for compound in compounds:
        letters = name_letters(compound)
        # Of compounds that share their letters, each is matched by its own spelling only.
        if spellings[letters] == 1:
            compound_by_letters[letters] = compound
    files: dict[tuple[str, str], str] = {}
    # Sorted, so that the first of several does not depend on the file system.
    for file in sorted(names):
        name = PurePosixPath(file).stem.strip()
        role = "compound"
        distractor = DISTRACTOR.fullmatch(name)
        if distractor:
            name = distractor[1]
            role = distractor[2].lower()
        match = compound_by_name.get(name_key(name))
        match = match or compound_by_letters.get(name_letters(name))
        if match is not None:
            files.setdefault((match, role), file)
    return files


def _find_images(source: Path) -> dict[str, Path]:
    """Return the images in or below a folder, by their relative paths."""
    images = {}
    for path in source.rglob("*"):
        # Copies from a Mac have hidden files with the names of the images.
        is_image = path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")
        if is_image and path.is_file():
            images[path.relative_to(source).as_posix()] = path
    return images


def _broken_images(files: Iterable[str], images: Mapping[str, Path]) -> dict[str, str]:
    """Return the faults of the files that are not images."""
    faults = {}
    for name in files:
        try:
            image_size(images[name])
        except BrokenImage as error:
            faults[name] = f"{name}: {error}"
    return faults


def load_compounds(file: Path, source: Path) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Read the list and find its images in or below ``source``.

    Returns:
        ``COMPOUNDS``; ``COMPOUND_IMAGES``, with paths relative to ``source``; and counts and names
        of incomplete compounds and unused images.
    """
    compounds = read_list(file)
    names = compounds["compound"].tolist()
    images = _find_images(source)
    files = match_images(names, list(images))
    example = f"{names[0]}{IMAGE_SUFFIXES[0]}"
    fault = f"{len(images)} images, none of a compound of {file}"
    require(files, source, fault, f"name them as {example!r}")
    unused = sorted({*images} - {*files.values()})
    # A broken image counts as missing.
    broken = _broken_images(files.values(), images)
    files = {role: name for role, name in files.items() if name not in broken}
    rows = [(name, role, files.get((name, role))) for name in names for role in ROLES]
    table = pd.DataFrame(rows, columns=list(COMPOUND_IMAGES.columns), dtype=object)
    without_image = table[table["path"].isna()]
    # the roles that have no image, of each incomplete compound
    missing = without_image.groupby("compound", sort=False)["role"].agg(", ".join)
    compounds = compounds.assign(complete=~compounds["compound"].isin(missing.index))
    # the first one, as an example
    lacks = [f"{name!r} lacks {roles}" for name, roles in missing[:1].items()]
    fault = f"no compound has all three images ({''.join(lacks)})"
    require(compounds["complete"].any(), source, fault, "add images")
    incomplete = [f"{name}: {roles}" for name, roles in missing.items()]
    without_constituents = compounds.loc[compounds["first"].isna(), "compound"].tolist()
    summary = {
        "compounds": len(compounds),
        "complete": int(compounds["complete"].sum()),
        "images": len(files),
        "kinds": {kind: int((compounds["kind"] == kind).sum()) for kind in NOUNS_SEEN},
        "images broken": named(list(broken.values())),
        "images not used": named(unused),
        "compounds incomplete": named(incomplete),
        "compounds without constituents": named(without_constituents),
    }
    _log_summary(summary)
    text_columns = [column for column in COMPOUNDS.columns if column != "complete"]
    compounds = compounds[[*text_columns, "complete"]].astype(dict.fromkeys(text_columns, "str"))
    return compounds, table.astype("str"), summary


def _log_summary(summary: Mapping[str, Any]) -> None:
    for reason, listed in summary.items():
        # Other entries are counts without names.
        if not isinstance(listed, dict) or not listed.get("count"):
            continue
        names = "; ".join(listed["names"][:NAMES_LOGGED])
        if listed["count"] > NAMES_LOGGED:
            names += "; …"
        log.warning("warning: %s: %d (%s)", reason, listed["count"], names)
    counts = (summary["compounds"], summary["complete"], summary["images"])
    log.info("%d compounds, %d complete, %d images", *counts)
