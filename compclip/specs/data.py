"""Images with long captions for training: reading from ShareGPT4V or a table, and checks."""

import hashlib
import io
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import read_json, safe_id
from compclip.core.errors import UserError, require
from compclip.core.progress import track
from compclip.core.reading.pictures import BrokenImage, image_size
from compclip.core.reading.records import read_records

CHECKING_THREADS = 8  # reading and hashing release Python's lock


@dataclass(frozen=True)
class LongExample:
    """An image's file, a caption, and where the caption's chunks end."""

    image: Path
    text: str
    ends: list[int]  # character offsets, increasing; the last one is the text's end

    def beginning(self, count: int) -> str:
        """Return the text of the first ``count`` chunks."""
        return self.text[: self.ends[count - 1]] if count else ""

    def chunk(self, number: int) -> str:
        start = self.ends[number - 1] if number else 0
        return self.text[start : self.ends[number]]

    def chunks(self) -> list[str]:
        return [self.chunk(number) for number in range(len(self.ends))]


class LongExamples:
    """The usable rows of a table of ``chunk_captions``, by number."""

    def __init__(self, rows: pd.DataFrame, images: Path) -> None:
        usable = rows[rows["fault"] == ""]
        self.names = usable["image"].to_numpy()
        self.texts = usable["text"].to_numpy()
        self.ends = usable["ends"].to_numpy()
        self.images = images
        faults = rows.loc[rows["fault"] != "", "fault"]
        # Without what is wrong with a single image, which is in parentheses.
        reasons = faults.str.split(" (", regex=False).str[0]
        # the number of unusable rows, by reason
        self.excluded = {str(reason): int(n) for reason, n in reasons.value_counts().items()}

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> LongExample:
        image = self.images / self.names[number]
        return LongExample(image, self.texts[number], self.ends[number].tolist())


def read_source(source: Path) -> pd.DataFrame:
    """Return the columns image, a path, and text of a source, both "" where absent.

    A source is a table with these columns, or ShareGPT4V's JSON: ``[{"image": path,
    "conversations": [{"from": "human", …}, {"from": "gpt", "value": caption}]}]``.
    """
    if source.suffix == ".json":
        table = _read_conversations(source)
    else:
        table, bad = read_records(source, ["image", "text"])
        require(not bad, source, bad[0] if bad else "", "correct this row")
    table = table[["image", "text"]].map(_clean_cell)
    return table.assign(image=table["image"].str.removeprefix("./")).astype("str")


def _read_conversations(source: Path) -> pd.DataFrame:
    records = read_json(source)
    is_list = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    require(is_list, source, "expected a list of objects with image and conversations")
    rows = [(record.get("image"), _first_answer(record)) for record in records]
    return pd.DataFrame(rows, columns=["image", "text"], dtype=object)


def _clean_cell(cell: Any) -> str:
    if not isinstance(cell, str):
        return ""
    # Lone surrogates cannot be written to artifacts.
    return cell.strip().encode("utf-8", "replace").decode()


def _first_answer(record: dict[str, Any]) -> Any:
    """Return the model's first turn."""
    turns = record.get("conversations")
    for turn in turns if isinstance(turns, list) else []:
        if isinstance(turn, dict) and turn.get("from") == "gpt":
            return turn.get("value")
    return record.get("text")  # of records without conversations


def check_examples(table: pd.DataFrame, images: Path) -> pd.DataFrame:
    """Return ``table`` with columns digest (of the image's content) and fault (with details in
    parentheses).
    """

    def check(row: tuple[str, str]) -> tuple[str, str]:
        name, text = row
        if not name:
            return "", "names no image"
        if not text:
            return "", "no caption"
        try:
            content = (images / safe_id(name)).read_bytes()
            image_size(io.BytesIO(content))
        except (BrokenImage, OSError, UserError) as error:
            # str() of an OSError has the path, too, which the caller's message names.
            reason = error.strerror if isinstance(error, OSError) else error
            return "", f"not a readable image ({reason})"
        return hashlib.blake2b(content, digest_size=16).hexdigest(), ""

    rows = list(zip(table["image"], table["text"], strict=True))
    with ThreadPool(CHECKING_THREADS) as pool:
        checked = list(track(pool.imap(check, rows, chunksize=16), len(rows), "images"))
    digests = [digest for digest, _ in checked]
    faults = [fault for _, fault in checked]
    return table.assign(digest=digests, fault=faults)
