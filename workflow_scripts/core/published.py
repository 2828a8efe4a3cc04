"""Read the published files as tables: data.pkl, split.pkl, and pickles of predictions.

Texts may be bytes, as Python 2 wrote them; numbers may be numpy's; lists may be tuples, sets or arrays. For any other
shape, UserError names the first wrong entry.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import limits
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.pickles import as_text, describe, read_pickle
from workflow_scripts.core.tables import SPLITS

CHANGE = ("noun", "original_adj", "new_adj")
CAPTION = ("image_id", "caption_id", "text", "swapped_text", *CHANGE)
PREDICTION = ("image_id", "caption_id", "path", "predicted")
# The published key of the held-out pairs is not documented: this one, and similar ones, are read.
HELDOUT = "heldout_pairs"


def read_data(path: str | Path) -> tuple[pd.DataFrame, list[str]]:
    """Read data.pkl: a row for each caption (columns CAPTION), sorted, and the images without captions.

    The last four columns are null for a caption that was not swapped.
    """
    rows: list[tuple[Any, ...]] = []
    silent: list[str] = []
    for image, captions in _mapping(path, "", read_pickle(path)).items():
        if not captions:
            silent.append(image)
        for number, caption in _mapping(path, f"image {image!r}: ", captions, _number).items():
            rows.append((image, number, *_caption(path, f"image {image!r}: caption {number}: ", caption)))
    if not rows:
        raise UserError(f"{path}: contains no captions; give the published data.pkl")
    table = pd.DataFrame(rows, columns=list(CAPTION)).astype({"caption_id": "int64"})
    return table.sort_values(["image_id", "caption_id"], ignore_index=True), sorted(silent)


def _caption(path: str | Path, where: str, value: Any) -> tuple[str | None, ...]:
    """Return text, swapped_text, and the three words of its change."""
    fields = _mapping(path, where, value)
    texts = []
    for name in ("text", "swapped_text"):
        text = as_text(fields.get(name))
        if text is None and (name == "text" or fields.get(name) is not None):
            raise UserError(f"{path}: {where}{name}: expected a text, got {describe(fields.get(name))}")
        texts.append(text)
    if texts[1] is None:
        return texts[0], None, None, None, None
    changes = _mapping(path, f"{where}changes_made: ", fields.get("changes_made"))
    words = [as_text(changes.get(name)) for name in CHANGE]
    for name, word in zip(CHANGE, words, strict=True):
        if word is None:
            raise UserError(f"{path}: {where}changes_made: {name}: expected a text, got {describe(changes.get(name))}")
    return (*texts, *words)


@dataclass(frozen=True)
class PublishedSplit:
    """The content of split.pkl: image ids of each split in its order, held-out pairs, keys that were not read."""

    images: dict[str, list[str]]
    pairs: list[str]
    unread: list[str]


def read_split(path: str | Path) -> PublishedSplit:
    """Read split.pkl, whose held-out pairs are under ``heldout_pairs`` or another key that begins with heldout."""
    content = _mapping(path, "", read_pickle(path))
    images = {}
    for name in SPLITS:
        if name not in content:
            raise UserError(f"{path}: no list {name!r}; its keys: {', '.join(map(repr, content)) or 'none'}")
        images[name] = _texts(path, name, content[name])
    names = [name for name in content if "".join(filter(str.isalpha, name.lower())).startswith("heldout")]
    named = HELDOUT if HELDOUT in content else names[0] if len(names) == 1 else None
    if named is None:
        wanted = f"the held-out pairs under {HELDOUT!r} or exactly one key that begins with heldout"
        raise UserError(f"{path}: expected {wanted}; its keys: {', '.join(content)}")
    pairs = _texts(path, named, content[named])
    for pair in pairs:
        if not all(pair.partition("_")):
            raise UserError(f"{path}: {named}: expected adjective_noun, got {pair!r}")
    if not pairs:
        raise UserError(f"{path}: {named}: no pairs; give the published split.pkl")
    return PublishedSplit(images, pairs, sorted(set(content) - set(SPLITS) - {named}))


def read_predictions(path: str | Path) -> pd.DataFrame:
    """Read a pickle of predictions: columns PREDICTION, in the file's order, with duplicates."""
    content = read_pickle(path)
    shape = "(image_id, caption_id, path, predicted_index)"
    if not isinstance(content, list | tuple):
        raise UserError(f"{path}: expected a list of {shape}, got {describe(content)}")
    rows = []
    for place, entry in enumerate(content):
        where = f"{path}: entry {place}"
        if not isinstance(entry, list | tuple) or len(entry) != 4:
            of = f" of {len(entry)}" if isinstance(entry, list | tuple) else ""
            raise UserError(f"{where}: expected a tuple {shape}, got {describe(entry)}{of}")
        image, caption, file, index = as_text(entry[0]) or None, _number(entry[1]), as_text(entry[2]), entry[3]
        if image is None or caption is None or file is None:
            wrong = 0 if image is None else 1 if caption is None else 2
            kind = "number" if wrong == 1 else "text"
            raise UserError(f"{where}: {PREDICTION[wrong]}: expected a {kind}, got {describe(entry[wrong])}")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 2**31:
            raise UserError(f"{where}: predicted index: expected an integer from 0, got {describe(index)}")
        rows.append((image, caption, file, index))
    return pd.DataFrame(rows, columns=list(PREDICTION)).astype({"caption_id": "int64", "predicted": "int64"})


def _number(value: Any) -> int | None:
    """Return a caption's number, an integer from 0 that may be written as a text; None for anything else."""
    text = as_text(value)
    if text is not None and text.isdecimal() and len(text) <= limits.COUNT_DIGITS:
        return int(text)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limits.EXACT_FLOAT else None


def _mapping(path: str | Path, where: str, value: Any, key: Any = as_text) -> dict[Any, Any]:
    """Return a dict with its keys read by ``key``."""
    if not isinstance(value, dict):
        raise UserError(f"{path}: {where}expected a dict, got {describe(value)}")
    result: dict[Any, Any] = {}
    for name, inner in value.items():
        read = key(name)
        if read is None:
            expected = "text" if key is as_text else "number"
            raise UserError(f"{path}: {where}expected a {expected} as key, got {describe(name)}")
        if read in result:
            raise UserError(f"{path}: {where}duplicate key {describe(name)}, written in two ways; remove one")
        result[read] = inner
    return result


def _texts(path: str | Path, where: str, value: Any) -> list[str]:
    """Return a list of texts: the keys of a dict, and a set sorted, because it has no order."""
    if not isinstance(value, list | tuple | set | frozenset | dict):
        raise UserError(f"{path}: {where}: expected a list, got {describe(value)}")
    texts = []
    for entry in value:
        text = as_text(entry)
        if text is None:
            raise UserError(f"{path}: {where}: expected texts, got {describe(entry)}")
        texts.append(text)
    return sorted(texts) if isinstance(value, set | frozenset) else texts
