"""The published files (facts: Published formats) as tables: data.pkl, split.pkl, and pickles of predictions.

A file of another shape is a UserError that names the first entry that is wrong. Texts may be bytes, as Python 2
wrote them; numbers may be numpy's, lists may be tuples, sets or arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.pickles import as_text, describe, read_pickle
from workflow_scripts.core.tables import SPLITS

CHANGE = ("noun", "original_adj", "new_adj")
CAPTION = ("image_id", "caption_id", "text", "swapped_text", *CHANGE)
PREDICTION = ("image_id", "caption_id", "path", "predicted")
# The key of the held-out pairs is not documented; ours, and any that is written like it.
HELDOUT = "heldout_pairs"


def read_data(path: str | Path) -> tuple[pd.DataFrame, list[str]]:
    """data.pkl: a row a caption (columns CAPTION), sorted; and the images without captions.

    The last four columns are null where the caption was not swapped.
    """
    rows: list[tuple[Any, ...]] = []
    silent: list[str] = []
    for image, captions in _mapping(path, "", read_pickle(path)).items():
        if not captions:
            silent.append(image)
        for number, caption in _mapping(path, f"image {image!r}: ", captions, _number).items():
            rows.append((image, number, *_caption(path, f"image {image!r}: caption {number}: ", caption)))
    if not rows:
        raise UserError(f"{path}: holds no captions")
    table = pd.DataFrame(rows, columns=list(CAPTION)).astype({"caption_id": "int64"})
    return table.sort_values(["image_id", "caption_id"], ignore_index=True), sorted(silent)


def _caption(path: str | Path, where: str, value: Any) -> tuple[str | None, ...]:
    """text, swapped_text, and the three words of its change."""
    fields = _mapping(path, where, value)
    texts = []
    for name in ("text", "swapped_text"):
        found = as_text(fields.get(name))
        if found is None and (name == "text" or fields.get(name) is not None):
            raise UserError(f"{path}: {where}{name} is {describe(fields.get(name))}, not a text")
        texts.append(found)
    if texts[1] is None:
        return texts[0], None, None, None, None
    changes = _mapping(path, f"{where}changes_made: ", fields.get("changes_made"))
    words = [as_text(changes.get(name)) for name in CHANGE]
    for name, word in zip(CHANGE, words, strict=True):
        if word is None:
            raise UserError(f"{path}: {where}changes_made: {name} is {describe(changes.get(name))}, not a text")
    return (*texts, *words)


@dataclass(frozen=True)
class PublishedSplit:
    """split.pkl: the image ids of each split as they stand there, the held-out pairs, and keys that were not read."""

    images: dict[str, list[str]]
    pairs: list[str]
    unread: list[str]


def read_split(path: str | Path) -> PublishedSplit:
    """split.pkl, which names its held-out pairs ``heldout_pairs``, or any key that begins with heldout."""
    content = _mapping(path, "", read_pickle(path))
    images = {}
    for name in SPLITS:
        if name not in content:
            raise UserError(f"{path}: no list {name!r}; it holds {', '.join(map(repr, content)) or 'nothing'}")
        images[name] = _texts(path, name, content[name])
    names = [name for name in content if "".join(filter(str.isalpha, name.lower())).startswith("heldout")]
    named = HELDOUT if HELDOUT in content else names[0] if len(names) == 1 else None
    if named is None:
        raise UserError(
            f"{path}: the held-out pairs stand under no key {HELDOUT!r}, nor under one alone that begins with heldout:"
            f" it holds {', '.join(content)}"
        )
    pairs = _texts(path, named, content[named])
    for pair in pairs:
        if not all(pair.partition("_")):
            raise UserError(f"{path}: {named}: {pair!r} is no adjective_noun")
    if not pairs:
        raise UserError(f"{path}: {named}: no pairs")
    return PublishedSplit(images, pairs, sorted(set(content) - set(SPLITS) - {named}))


def read_predictions(path: str | Path) -> pd.DataFrame:
    """A pickle of predictions: columns PREDICTION, in the file's order; equal tuples stay."""
    content = read_pickle(path)
    if not isinstance(content, list | tuple):
        raise UserError(f"{path}: is {describe(content)}, not a list of (image_id, caption_id, path, predicted_index)")
    rows = []
    for place, entry in enumerate(content):
        where = f"{path}: entry {place}"
        if not isinstance(entry, list | tuple) or len(entry) != 4:
            of = f" of {len(entry)}" if isinstance(entry, list | tuple) else ""
            raise UserError(
                f"{where} is {describe(entry)}{of}, not a tuple (image_id, caption_id, path, predicted_index)"
            )
        image, caption, file, index = as_text(entry[0]) or None, _number(entry[1]), as_text(entry[2]), entry[3]
        if image is None or caption is None or file is None:
            wrong = 0 if image is None else 1 if caption is None else 2
            raise UserError(f"{where}: {PREDICTION[wrong]} is {describe(entry[wrong])}")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 2**31:
            raise UserError(f"{where}: the predicted index is {describe(index)}, not a whole number from 0")
        rows.append((image, caption, file, index))
    return pd.DataFrame(rows, columns=list(PREDICTION)).astype({"caption_id": "int64", "predicted": "int64"})


def _number(value: Any) -> int | None:
    """A caption's number: whole, from 0; it may be written as a text."""
    text = as_text(value)
    if text is not None and text.isdecimal() and len(text) < 16:
        return int(text)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _mapping(path: str | Path, where: str, value: Any, key: Any = as_text) -> dict[Any, Any]:
    """A dict with its keys read by ``key``."""
    if not isinstance(value, dict):
        raise UserError(f"{path}: {where or 'it '}is {describe(value)}, not a dict")
    found: dict[Any, Any] = {}
    for name, inner in value.items():
        read = key(name)
        if read is None:
            raise UserError(f"{path}: {where}the key {describe(name)} is no {'text' if key is as_text else 'number'}")
        if read in found:
            raise UserError(f"{path}: {where}the key {describe(name)} stands twice, written in two ways")
        found[read] = inner
    return found


def _texts(path: str | Path, where: str, value: Any) -> list[str]:
    """A list of texts; of a dict, its keys; of a set, which has no order, sorted."""
    if not isinstance(value, list | tuple | set | frozenset | dict):
        raise UserError(f"{path}: {where} is {describe(value)}, not a list")
    texts = []
    for entry in value:
        text = as_text(entry)
        if text is None:
            raise UserError(f"{path}: {where} holds {describe(entry)}, not a text")
        texts.append(text)
    return sorted(texts) if isinstance(value, set | frozenset) else texts
