"""Read the published files as tables: data.pkl, split.pkl, and pickles of predictions.

Texts may be bytes, as Python 2 wrote them; numbers may be numpy's; lists may be tuples or sets. For
any other shape, UserError names the first wrong entry.
"""

import re
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core import limits
from compclip.core.errors import UserError, require
from compclip.core.reading.pickles import read_pickle
from compclip.core.tables import SPLITS

CHANGE = ("noun", "original_adj", "new_adj")
CAPTION_COLUMNS = ("image_id", "caption_id", "text", "swapped_text", *CHANGE)
PREDICTION_COLUMNS = ("image_id", "caption_id", "path", "predicted")
# The published key of the held-out pairs is not documented: this one, and similar ones, are read.
HELDOUT_KEY = "heldout_pairs"


def decoded(value: Any) -> str | None:
    """Return a text, or bytes decoded as UTF-8 or else Latin-1; None for other types and for lone
    surrogates.
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    return value if isinstance(value, str) and not re.search("[\ud800-\udfff]", value) else None


def read_data(path: str | Path) -> tuple[pd.DataFrame, list[str]]:
    """Read data.pkl: a row for each caption (columns CAPTION_COLUMNS), sorted, and the images
    without captions.

    The last four columns are null for a caption that was not swapped.
    """
    rows: list[tuple[Any, ...]] = []
    silent: list[str] = []
    for image, captions in _mapping(path, read_pickle(path)).items():
        if not captions:
            silent.append(image)
        for number, caption in _mapping(
            f"{path}: image {image!r}", captions, _number, "a number"
        ).items():
            rows.append(
                (image, number, *_caption(f"{path}: image {image!r}: caption {number}", caption))
            )
    require(rows, path, "contains no captions", "give the published data.pkl")
    table = pd.DataFrame(rows, columns=list(CAPTION_COLUMNS)).astype({"caption_id": "int64"})
    return table.sort_values(["image_id", "caption_id"], ignore_index=True), sorted(silent)


def _caption(where: str, value: Any) -> tuple[str | None, ...]:
    """Return text, swapped_text, and the three words of its change."""
    fields = _mapping(where, value)
    text = _text(f"{where}: text", fields.get("text"))
    if fields.get("swapped_text") is None:
        return text, None, None, None, None
    swapped = _text(f"{where}: swapped_text", fields["swapped_text"])
    changes = _mapping(f"{where}: changes_made", fields.get("changes_made"))
    return (
        text,
        swapped,
        *(_text(f"{where}: changes_made: {name}", changes.get(name)) for name in CHANGE),
    )


@dataclass(frozen=True)
class PublishedSplit:
    """The content of split.pkl: image ids of each split in their order, held-out pairs, keys that
    were not read.
    """

    images: dict[str, list[str]]
    pairs: list[str]
    unread: list[str]


def read_split(path: str | Path) -> PublishedSplit:
    """Read split.pkl, whose held-out pairs are under ``heldout_pairs`` or another key that begins
    with heldout.
    """
    content = _mapping(path, read_pickle(path))
    keys = ", ".join(map(repr, content)) or "none"
    for name in SPLITS:
        require(name in content, path, f"no list {name!r}; its keys: {keys}")
    images = {name: _texts(f"{path}: {name}", content[name]) for name in SPLITS}
    names = [
        name for name in content if "".join(filter(str.isalpha, name.lower())).startswith("heldout")
    ]
    key = HELDOUT_KEY if HELDOUT_KEY in content else names[0] if len(names) == 1 else ""
    wanted = f"the held-out pairs under {HELDOUT_KEY!r} or exactly one key that begins with heldout"
    require(key, path, f"expected {wanted}; its keys: {keys}")
    pairs = _texts(f"{path}: {key}", content[key])
    for pair in pairs:
        _expect(all(pair.partition("_")), f"{path}: {key}", "adjective_noun", pair)
    require(pairs, path, f"{key}: no pairs", "give the published split.pkl")
    return PublishedSplit(images, pairs, sorted(set(content) - set(SPLITS) - {key}))


def read_predictions(path: str | Path) -> pd.DataFrame:
    """Read a pickle of predictions: columns PREDICTION_COLUMNS, in the file's order, with
    duplicates.
    """
    content = read_pickle(path)
    shape = "(image_id, caption_id, path, predicted_index)"
    _expect(isinstance(content, list | tuple), path, f"a list of {shape}", content)
    rows = []
    for place, entry in enumerate(content):
        where = f"{path}: entry {place}"
        _expect(
            isinstance(entry, list | tuple) and len(entry) == 4, where, f"a tuple {shape}", entry
        )
        image, caption, file, index = entry
        _expect(_number(caption) is not None, f"{where}: caption_id", "a number", caption)
        is_index = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 2**31
        _expect(is_index, f"{where}: predicted index", "an integer from 0", index)
        rows.append(
            (
                _text(f"{where}: image_id", image),
                _number(caption),
                _text(f"{where}: path", file),
                index,
            )
        )
    return pd.DataFrame(rows, columns=list(PREDICTION_COLUMNS)).astype(
        {"caption_id": "int64", "predicted": "int64"}
    )


def _number(value: Any) -> int | None:
    """Return a caption's number, an integer from 0 that may be written as a text; None for anything
    else.
    """
    text = decoded(value)
    if text is not None and text.isdecimal() and len(text) <= limits.COUNT_DIGITS:
        return int(text)
    return (
        value
        if isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value < limits.EXACT_FLOAT
        else None
    )


def _expect(holds: bool, where: str | Path, expected: str, value: Any) -> None:
    if not holds:
        raise UserError(f"{where}: expected {expected}, got {reprlib.repr(value)}")


def _text(where: str, value: Any) -> str:
    text = decoded(value)
    _expect(text is not None, where, "a text", value)
    return str(text)


def _mapping(
    where: str | Path, value: Any, key: Any = decoded, expected: str = "a text"
) -> dict[Any, Any]:
    """Return a dict with its keys read by ``key``."""
    _expect(isinstance(value, dict), where, "a dict", value)
    for name in value:
        _expect(key(name) is not None, where, f"{expected} as key", name)
    return {key(name): inner for name, inner in value.items()}


def _texts(where: str, value: Any) -> list[str]:
    """Return a list of texts: a list as it is, the keys of a dict, or a sorted set."""
    _expect(isinstance(value, list | tuple | set | frozenset | dict), where, "a list", value)
    texts = [_text(where, entry) for entry in value]
    return sorted(texts) if isinstance(value, set | frozenset) else texts
