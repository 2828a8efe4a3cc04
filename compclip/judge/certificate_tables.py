"""Tables of right and wrong texts of images, by which a judge is certified: check them, and read
them in published layouts.

Layouts: SugarCrepe (Hsieh et al. 2023), SugarCrepe++ (Dumpala et al. 2024), ARO (Yuksekgonul et al.
2023), Winoground (Thrush et al. 2022), and a table with the columns image, right, wrong and kind.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.reading.documents import decode, no_such, parse_json
from compclip.core.reading.normal import normalize
from compclip.core.reading.records import first_rows, read_records
from compclip.core.settings.arguments import text_fault

ADJECTIVE, BINDING, NOUN, SYNONYM = "adjective", "binding", "noun", "synonym"
KINDS = (ADJECTIVE, BINDING, NOUN, SYNONYM)
REQUIRED = ["image", "right", "wrong", "kind"]
BOX_KEYS = ["bbox_x", "bbox_y", "bbox_w", "bbox_h"]
Layout = list[tuple[str, list[str], list[str]]]
# The keys of image, right texts and wrong texts, for each image of a record; layouts with more keys
# precede those with fewer.
PUBLISHED: dict[str, Layout] = {
    "SugarCrepe++": [("filename", ["caption", "caption2"], ["negative_caption"])],
    "SugarCrepe": [("filename", ["caption"], ["negative_caption"])],
    "ARO": [("image_path", ["true_caption"], ["false_caption"])],
    # Text score: both images must choose their captions.
    "Winoground": [
        ("image_0", ["caption_0"], ["caption_1"]),
        ("image_1", ["caption_1"], ["caption_0"]),
    ],
}


def check_certificate_table(
    table: pd.DataFrame, location: object = "table", *, skip_faulty: bool = False
) -> pd.DataFrame:
    """Return a certificate table with tuples of texts, and with all columns.

    Args:
        table: a row for each image and its texts: ``image``, a path; ``right`` and ``wrong``, a
            text or a list of texts; ``kind``, such as adjective (capitals and outer spaces of the
            known ones do not count). Optional: ``item``, by default the number of the row: rows of
            one item are right only together; ``box``: x, y, width and height in pixels, or None.
        location: names the table in errors.
        skip_faulty: skip items with a faulty row with a warning, if users cannot fix the table.

    Raises:
        UserError: a column is missing, a value is not as above, two texts of a row are equal,
            a row occurs twice, or there are no rows.
    """
    absent = [name for name in REQUIRED if name not in table]
    require(not absent, location, f"no column {', '.join(absent)}", "add it")
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    faults: dict[Any, str] = {}  # the first of each item
    for number, record in enumerate(table.to_dict("records")):
        row = {"item": str(number), "box": None, **record}
        for name in ("right", "wrong"):
            is_list = isinstance(row[name], list | tuple | np.ndarray)
            row[name] = tuple(row[name] if is_list else [row[name]])
        row["kind"] = _as_kind(row["kind"])
        row["box"] = _as_box(row["box"])
        fault = _fault(row)
        content = tuple(row[name] for name in [*REQUIRED, "box"])
        # Only faultless values are sure to have a hash.
        if not fault and content in rows:
            fault = "duplicate of an earlier row"
        if fault:
            line = f"{location}: row {number}: {fault}; correct or remove it"
            faults.setdefault(row["item"], line)
        else:
            rows[content] = row
    # Half an item of Winoground would be easier than the whole.
    whole = [row for row in rows.values() if row["item"] not in faults]
    if faults and not (skip_faulty and whole):
        raise UserError(next(iter(faults.values())))
    for line in faults.values():
        log.warning("warning: skipped: %s", line)
    require(whole, location, "no rows", "give at least one image with its texts")
    result = pd.DataFrame(whole)[["item", *REQUIRED, "box"]]
    kinds = result.groupby("item")["kind"].nunique()
    fault = f"item {kinds.idxmax()!a} has several kinds"
    require(kinds.max() == 1, location, fault, "give its rows one kind")
    return result


def _as_kind(value: Any) -> Any:
    """Return a kind without white space around it, one of ``KINDS`` in small letters."""
    if not isinstance(value, str):
        return value
    kind = value.strip()
    return kind.lower() if kind.lower() in KINDS else kind


def _as_box(value: Any) -> tuple[float, ...] | None:
    """Return the numbers of a box, () if it has others; None if there is no box."""
    # pandas makes NaN of None.
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    try:
        return tuple(map(float, value))
    except (TypeError, ValueError):
        return ()


def _fault(row: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a row, None if nothing is."""
    texts = [*row["right"], *row["wrong"]]
    for value in (row["item"], row["image"], row["kind"], *texts):
        fault = text_fault(value)
        if fault:
            return fault
    if not (row["right"] and row["wrong"]):
        return "no right or no wrong text"
    # A judge is asked for a choice between texts that look different.
    as_read = {normalize(text).text.lower() for text in texts}
    if len(as_read) < len(texts):
        return f"two equal texts among {ascii(texts)[:100]}"
    if row["kind"] == SYNONYM and len(row["right"]) < 2:
        return "a synonym needs two right texts"
    box = row["box"]
    is_box = box is None or len(box) == 4 and np.isfinite(box).all() and min(box[2:]) > 0
    return None if is_box else f"box {box!a}: expected four finite numbers, the last two above 0"


def read_certificate_table(path: str | Path, kind: str = "") -> pd.DataFrame:
    """Read a file of right and wrong texts; its layout is recognized by its keys or columns.

    Args:
        path: JSON of SugarCrepe, SugarCrepe++, ARO or of a table's rows, with lists of texts;
            Winoground's JSON lines; or a table in CSV, with one right and one wrong text.
        kind: of all rows, such as ``binding`` for SugarCrepe's swap_att; a table has a column.

    Returns:
        As of ``check_certificate_table``; images are named as in the file. Faulty items of a
        published file, such as two equal texts, are skipped with a warning.

    Raises:
        UserError: the file is missing, of another layout, or faulty.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(no_such(path))
    is_json = path.suffix.lower() == ".json"
    table = _read_json(path) if is_json else pd.DataFrame(columns=first_rows(path, 1)[0])
    layouts = {name: _keys(layout) for name, layout in PUBLISHED.items()} | {"a table": REQUIRED}
    name = next((name for name, keys in layouts.items() if {*keys} <= {*table}), "")
    key_names = ", ".join(map(str, table))[:200]
    fault = f"unknown layout with the keys {key_names}"
    require(name, path, fault, f"expected that of {', '.join(layouts)}")
    if not is_json:
        # In a table, rows of one item are right only together.
        optional = [] if name in PUBLISHED else ["item"]
        table, faults = read_records(path, layouts[name], optional)
        require(not faults, path, "; ".join(faults[:1]), "correct the row")
    if name not in PUBLISHED:
        return check_certificate_table(table, path)
    require(kind, path, "no kind for its rows", "give kind, such as adjective")
    rows = _published_rows(table, PUBLISHED[name], kind)
    return check_certificate_table(rows, path, skip_faulty=True)


def _keys(layout: Layout) -> list[str]:
    """Return the keys that a layout needs."""
    keys = []
    for image, right, wrong in layout:
        keys += [image, *right, *wrong]
    return keys


def _read_json(path: Path) -> pd.DataFrame:
    """Return the records of a JSON list, or of a mapping from ids."""
    try:
        content = parse_json(decode(path))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); download it again") from error
    records = list(content.values()) if isinstance(content, dict) else content
    is_list = isinstance(records, list) and records
    are_objects = is_list and all(isinstance(record, dict) for record in records)
    require(are_objects, path, "expected a list of objects", "give one of the published files")
    return pd.DataFrame(records)


def _published_rows(table: pd.DataFrame, layout: Layout, kind: str) -> pd.DataFrame:
    """Return the rows of a certificate table for the records of a published file."""
    rows = []
    # ARO crops each image to the box of what the captions are about.
    has_box = {*BOX_KEYS} <= {*table}
    for number, record in enumerate(table.to_dict("records")):
        box = [record[key] for key in BOX_KEYS] if has_box else None
        for image_key, right_keys, wrong_keys in layout:
            image = record[image_key]
            # Winoground names images without the suffix of their files.
            if isinstance(image, str) and not Path(image).suffix:
                image += ".png"
            row = {
                "item": str(number),
                "image": image,
                "right": [record[key] for key in right_keys],
                "wrong": [record[key] for key in wrong_keys],
                "kind": kind,
                "box": box,
            }
            rows.append(row)
    return pd.DataFrame(rows)
