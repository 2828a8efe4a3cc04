"""Read compound nouns and three images of each: of the compound, and of each of its two nouns.

The list is a table with the column compound and, optionally, first, second, kind (either, both,
none), n1 and n2. The images are named after the compound (``snow ball.jpg``), with ``_n1`` and
``_n2`` for the two nouns. A compound is incomplete if an image is missing or unreadable.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.pictures import SUFFIXES, BrokenImage, image_size
from compclip.core.records import read_records
from compclip.core.tables import COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, ROLES
from compclip.dataset.source import named

DISTRACTOR = re.compile(r"(.+)_(n[12])", re.IGNORECASE)
OPTIONAL_COLUMNS = ("first", "second", "kind", "n1", "n2")


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
    return (first, second) if first and second else (None, None)


def read_list(file: Path) -> pd.DataFrame:
    """Return a row for each compound: columns ``compound`` and ``OPTIONAL_COLUMNS``, texts or None.

    Constituents default to ``split_open``; n1 and n2, the nouns that the distractors show, to the
    constituents. UserError names the first row with a fault.
    """
    table, bad = read_records(file, ["compound"], OPTIONAL_COLUMNS)
    require(not bad, file, f"{[*bad, ''][0]}", "correct the row")
    require(len(table), file, "no compounds", "give a table with a column 'compound'")
    rows, places = [], dict[str, str]()
    for record in table.to_dict("records"):
        where = f"{file}: {record.pop('where')}"
        row = {
            name: tidy_name(record.get(name) or "") or None
            for name in ("compound", *OPTIONAL_COLUMNS)
        }
        name = row["compound"] or ""
        require(name, where, "no compound", "fill it in or remove the row")
        require(
            (row["first"] is None) == (row["second"] is None),
            where,
            "one constituent",
            "give both or neither",
        )
        require(
            row["kind"] in (None, *NOUNS_SEEN),
            where,
            f"kind {row['kind']!r}",
            f"use {', '.join(NOUNS_SEEN)}",
        )
        require(
            places.setdefault(name_key(name), where) == where,
            where,
            f"duplicate entry {name!r}",
            "remove one",
        )
        if row["first"] is None:
            row["first"], row["second"] = split_open(name)
        rows.append(row | {"n1": row["n1"] or row["first"], "n2": row["n2"] or row["second"]})
    return pd.DataFrame(rows, dtype=object)


def match_images(compounds: Sequence[str], names: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the image file of each compound and role, if there is one; the first of several.

    Equal spellings match first, then spellings that differ only in spaces and hyphens, if they fit
    one compound only.
    """
    spellings = Counter(map(name_letters, compounds))
    exact = {name_key(name): name for name in compounds}
    loose = {name_letters(name): name for name in compounds if spellings[name_letters(name)] == 1}
    files: dict[tuple[str, str], str] = {}
    for name in sorted(names):
        stem = PurePosixPath(name).stem.strip()
        distractor = DISTRACTOR.fullmatch(stem)
        base, role = (distractor[1], distractor[2].lower()) if distractor else (stem, "compound")
        compound = exact.get(name_key(base)) or loose.get(name_letters(base))
        if compound is not None:
            files.setdefault((compound, role), name)
    return files


def load_compounds(file: Path, source: Path) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Read the list and find its images in or below ``source``.

    Returns:
        ``COMPOUNDS``; ``COMPOUND_IMAGES``, with paths relative to ``source``; and counts and names
        of incomplete compounds and unused images.
    """
    compounds = read_list(file)
    paths = {
        path.relative_to(source).as_posix(): path
        for path in sorted(source.rglob("*"))
        if path.is_file()
    }
    images = [
        name
        for name, path in paths.items()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    ]
    files = match_images(compounds["compound"].tolist(), images)
    unused = sorted({*images} - {*files.values()})
    example = f"{compounds['compound'][0]}{SUFFIXES[0]}"
    require(
        files,
        source,
        f"{len(images)} images, none of a compound of {file}",
        f"name them as {example!r}",
    )
    broken = []
    for place, name in list(files.items()):
        try:
            image_size(paths[name])
        except BrokenImage as error:
            broken.append(f"{name}: {error}")
            del files[place]
    rows = [
        (name, role, files.get((name, role))) for name in compounds["compound"] for role in ROLES
    ]
    table = pd.DataFrame(rows, columns=list(COMPOUND_IMAGES.columns), dtype=object)
    missing = table[table["path"].isna()].groupby("compound", sort=False)["role"].agg(", ".join)
    compounds = compounds.assign(complete=~compounds["compound"].isin(missing.index))
    fault = (
        "no compound has all three images "
        f"({[f'{name!r} lacks {roles}' for name, roles in missing[:1].items()]})"
    )
    require(compounds["complete"].any(), source, fault, "add images")
    summary = {
        "compounds": len(compounds),
        "complete": int(compounds["complete"].sum()),
        "images": len(files),
        "kinds": {kind: int((compounds["kind"] == kind).sum()) for kind in NOUNS_SEEN},
        "images broken": named(broken),
        "images not used": named(unused),
        "compounds incomplete": named([f"{name}: {roles}" for name, roles in missing.items()]),
        "compounds without constituents": named(
            list(compounds["compound"][compounds["first"].isna()])
        ),
    }
    for reason, value in summary.items():
        if isinstance(value, dict) and value.get("count"):
            more = "; …" * (value["count"] > 3)
            log.warning(
                "warning: %s: %d (%s%s)",
                reason,
                value["count"],
                "; ".join(value["names"][:3]),
                more,
            )
    log.info(
        "%d compounds, %d complete, %d images",
        summary["compounds"],
        summary["complete"],
        summary["images"],
    )
    texts = [name for name in COMPOUNDS.columns if name != "complete"]
    return (
        compounds[[*texts, "complete"]].astype(dict.fromkeys(texts, "str")),
        table.astype("str"),
        summary,
    )
