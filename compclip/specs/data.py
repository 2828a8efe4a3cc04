"""Images with long captions for training: reading from ShareGPT4V or a table, and checks."""

import hashlib
import io
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.pictures import BrokenImage, image_size
from compclip.core.progress import track
from compclip.core.records import read_records
from compclip.io import read_json, safe_id

CHECKING_THREADS = 8


@dataclass(frozen=True)
class LongExample:
    """An image's file, a caption, and where the caption's chunks end."""

    image: Path
    text: str
    ends: list[int]


class LongExamples:
    """The usable rows of a table of ``cut_captions``, by number."""

    def __init__(self, rows: pd.DataFrame, images: Path) -> None:
        usable = rows[rows["fault"] == ""]
        self.names, self.texts, self.ends = (
            usable[name].to_numpy() for name in ("image", "text", "ends")
        )
        self.images, self.skipped = images, len(rows) - len(usable)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> LongExample:
        return LongExample(
            self.images / self.names[number], self.texts[number], self.ends[number].tolist()
        )


def read_source(source: Path) -> pd.DataFrame:
    """Return the columns image, a path, and text of a source, both "" where absent.

    A source is a table with these columns, or ShareGPT4V's JSON: ``[{"image": path,
    "conversations": [{"from": "human", …}, {"from": "gpt", "value": caption}]}]``.
    """
    records = read_json(source) if source.suffix == ".json" else None
    if records is None:
        table, bad = read_records(source, ["image", "text"])
        require(not bad, source, bad[0] if bad else "", "correct this row")
    else:
        is_list = isinstance(records, list) and all(isinstance(record, dict) for record in records)
        require(is_list, source, "expected a list of objects with image and conversations")
        pairs = [(record.get("image"), _first_answer(record)) for record in records]
        table = pd.DataFrame(pairs, columns=["image", "text"], dtype=object)
    # Lone surrogates cannot be written to artifacts.
    cells = table[["image", "text"]]
    table = cells.map(
        lambda cell: (
            cell.strip().encode("utf-8", "replace").decode() if isinstance(cell, str) else ""
        )
    )
    return table.assign(image=table["image"].str.removeprefix("./")).astype("str")


def _first_answer(record: dict[str, Any]) -> Any:
    """Return the model's first turn."""
    turns = record.get("conversations")
    turns = [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
    return next(
        (turn.get("value") for turn in turns if turn.get("from") == "gpt"), record.get("text")
    )


def check_examples(table: pd.DataFrame, images: Path) -> pd.DataFrame:
    """Return ``table`` with columns digest (of the image's content) and fault (with details in
    parentheses).
    """

    def check(row: tuple[str, str]) -> tuple[str, str]:
        name, text = row
        if not name or not text:
            return "", "no caption" if name else "names no image"
        try:
            raw = (images / safe_id(name)).read_bytes()
            image_size(io.BytesIO(raw))
        except (BrokenImage, OSError, UserError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return "", f"not a readable image ({reason})"
        return hashlib.blake2b(raw, digest_size=16).hexdigest(), ""

    rows = list(zip(table["image"], table["text"], strict=True))
    with ThreadPool(CHECKING_THREADS) as pool:
        checked = list(track(pool.imap(check, rows, chunksize=16), len(rows), "images"))
    return table.assign(
        digest=[digest for digest, _ in checked], fault=[fault for _, fault in checked]
    )
