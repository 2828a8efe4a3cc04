"""What others' data sets say of images and their captions, and whether the images can be read.

A source is a file, or a folder of such files, which are read in the order of their names:

- ``.json``, as ShareGPT4V's: a list of ``{"image": path, "conversations": [{"from": "human", …}, {"from": "gpt",
  "value": caption}]}``;
- ``.parquet``: columns ``image``, a path, and ``text``;
- ``.tar``, as WebDataset's: of each sample an image and a caption, ``000017.jpg`` and ``000017.txt``.

Paths are relative to the folder of images. A few entries are held in memory at once, however many there are.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import stat
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as arrow
import pyarrow.parquet as pq

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import safe_id
from workflow_scripts.core.pictures import SUFFIXES, BrokenImage, image_size

# Rows of Parquet that are read together.
BATCH = 1024
# Images that are held at once; as many threads as half of it look at them.
HELD = 16
WHOLE = -1  # the offset of an image that is a file of its own


class Entry(NamedTuple):
    """What a source says of an example.

    Attributes:
        name: the image's, or the place in the source where it states none (``record 3``)
        text: the caption; "" where there is none
        file: the image's below the folder of images, or the shard's below that of the source
        offset: of the image's bytes in a shard; ``WHOLE`` for a file of its own
        size: of the image in bytes; -1 where there is none
        fault: why it cannot be used, the particulars in brackets; "" where it can
        digest: of the image's bytes, of an example that can be used
        modified: the time at which the image's file was written, in ns: of this machine alone; -1 where there is none
    """

    name: str
    text: str
    file: str = ""
    offset: int = WHOLE
    size: int = -1
    fault: str = ""
    digest: str = ""
    modified: int = -1


def read_entries(source: Path) -> Iterator[Entry]:
    """What the files of a source say, without a look at the images."""
    for file in source_files(source):
        yield from _READERS[file.suffix](file)


def source_files(source: Path) -> list[Path]:
    if source.is_file() and source.suffix in _READERS:
        return [source]
    found = sorted(p for p in source.glob("*") if p.suffix in _READERS and p.is_file()) if source.is_dir() else []
    kinds = sorted({p.suffix for p in found})
    if len(kinds) > 1:
        raise UserError(f"{source}: holds {' and '.join(kinds)} files: name one of them, or a folder of one kind")
    if not found:
        known = ", ".join(_READERS)
        packed = ".tar." in source.name or any(source.glob("*.tar.*"))
        hint = "; a shard that is compressed must be unpacked: gunzip" if packed else ""
        raise UserError(f"{source}: no file, nor a folder with files, of {known}{hint}")
    return found


def folder_of(source: Path, images: Path | None) -> Path:
    """Where the files are that entries name."""
    own = source if source.is_dir() else source.parent
    if images is None or source_files(source)[0].suffix == ".tar":
        return own
    if not images.is_dir():
        raise UserError(f"{images}: no such folder of images")
    return images


def _entry(source: Path, number: int, image: Any, text: Any) -> Entry:
    """Of a record that states a path and a caption. Raises UserError for a path that leaves its folder."""
    where = f"{source.name}: record {number}"
    if not isinstance(image, str) or not image:
        return Entry(where, "", fault="names no image")
    try:
        file = safe_id(image.removeprefix("./"))
    except UserError as error:
        raise UserError(
            f"{source}: record {number}: the image's path {image!r} leaves the folder of images: correct it"
        ) from error
    if not isinstance(text, str) or not text.strip():
        return Entry(image, "", file, fault=f"no caption ({where})")
    return Entry(image, text.strip(), file)


def _json(file: Path) -> Iterator[Entry]:
    import ijson

    number = 0
    try:
        with file.open("rb") as stream:
            marked = stream.read(3) == codecs.BOM_UTF8
            stream.seek(3 if marked else 0)
            if stream.read(1024).lstrip()[:1] != b"[":
                raise UserError(f"{file}: no list of objects, as ShareGPT4V's files are")
            stream.seek(3 if marked else 0)
            for number, record in enumerate(ijson.items(stream, "item", use_float=True), 1):
                image, text = _said(record) if isinstance(record, dict) else (None, None)
                yield _entry(file, number, image, text)
    except ijson.JSONError as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: not JSON behind record {number} ({reason}): get it again") from error


def _said(record: dict[str, Any]) -> tuple[Any, Any]:
    """Image and caption of ShareGPT4V; the caption is the first thing that the model says."""
    turns = record.get("conversations")
    turns = [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
    return record.get("image"), next((turn.get("value") for turn in turns if turn.get("from") == "gpt"), None)


def _parquet(file: Path) -> Iterator[Entry]:
    try:
        with pq.ParquetFile(file) as table:
            for column in ("image", "text"):
                if column not in table.schema_arrow.names:
                    names = ", ".join(map(repr, table.schema_arrow.names)) or "none"
                    raise UserError(f"{file}: no column {column!r}; its columns: {names}")
            batches = table.iter_batches(BATCH, columns=["image", "text"])
            for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
                yield _entry(file, number, row["image"], row["text"])
    except arrow.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: not a readable Parquet file ({reason}): get it again") from error


def _tar(file: Path) -> Iterator[Entry]:
    try:
        # Without compression, since images are read from where they lie.
        with tarfile.open(file, "r:") as archive:
            sample: dict[str, Any] = {}
            while (member := archive.next()) is not None:
                archive.members.clear()  # else it keeps them all
                name = _member(file, member)
                if not member.isreg() or member.sparse is not None:
                    continue
                folder, _, base = name.rpartition("/")
                stem, _, ending = base.partition(".")
                stem, ending = f"{folder}/{stem}".lstrip("/"), f".{ending.lower()}"
                if sample and stem != sample["name"]:
                    yield _sample(file, sample)
                    sample = {}
                sample["name"] = stem
                if ending == ".txt":
                    sample["text"] = archive.extractfile(member).read()
                elif ending in SUFFIXES:
                    sample |= {"offset": member.offset_data, "size": member.size}
            if sample:
                yield _sample(file, sample)
            # tarfile takes a damaged header for the end, at which there must be zeros.
            archive.fileobj.seek(archive.offset)
            if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("no end of the archive where its last member ends")
    except tarfile.TarError as error:
        raise UserError(f"{file}: truncated, damaged or no tar ({error}): get it again") from error


def _member(file: Path, member: tarfile.TarInfo) -> str:
    name = member.name
    while name.startswith("./"):
        name = name[2:]
    try:
        return name if name in ("", ".") and member.isdir() else safe_id(name)
    except UserError as error:
        raise UserError(f"{file}: holds {member.name!r}, which is no path inside a folder: do not trust it") from error


def _sample(file: Path, sample: dict[str, Any]) -> Entry:
    name = f"{file.stem}/{sample['name']}"  # another shard may count from the beginning again
    if "offset" not in sample:
        return Entry(name, "", file.name, fault="no image")
    place = file.name, sample["offset"], sample["size"]
    try:
        text = sample.get("text", b"").decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return Entry(name, "", *place, fault="the caption is not UTF-8")
    return Entry(name, text, *place, fault="" if text else "no caption")


_READERS: dict[str, Callable[[Path], Iterator[Entry]]] = {".json": _json, ".parquet": _parquet, ".tar": _tar}


def look(entries: Iterable[Entry], folder: Path) -> Iterator[tuple[Entry, Path | bytes]]:
    """The entries with what was found of their images, and the images, in order; a few are held at once."""
    coming: deque[Any] = deque()
    with ThreadPoolExecutor(HELD // 2) as pool:
        try:
            for entry in entries:
                coming.append(pool.submit(_look_at, entry, folder))
                if len(coming) == HELD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _look_at(entry: Entry, folder: Path) -> tuple[Entry, Path | bytes]:
    if not entry.file:
        return entry, b""
    image = read_image(entry, folder)
    if isinstance(image, bytes):
        entry = entry._replace(size=len(image))
    else:
        size, modified = file_state(image)  # before it is read: what is written meanwhile is seen the next time
        entry = entry._replace(size=size, modified=modified)
    if entry.fault:
        return entry, image
    try:
        if entry.size < 0:
            raise BrokenImage("no such file")
        raw, name = (image, entry.name) if isinstance(image, bytes) else (image.read_bytes(), image.name)
        image_size(_Named(raw, name))
    except (BrokenImage, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return entry._replace(fault=f"not a readable image ({reason})"), image
    return entry._replace(digest=hashlib.blake2b(raw, digest_size=16).hexdigest()), image


def file_state(path: str | Path) -> tuple[int, int]:
    """A file's size in bytes and the time at which it was written, in ns; -1 and -1 where there is none."""
    try:
        state = os.stat(path)
    except OSError:
        return -1, -1
    return (state.st_size, state.st_mtime_ns) if stat.S_ISREG(state.st_mode) else (-1, -1)


class _Named(io.BytesIO):
    """Bytes that say whose they are, as a file does."""

    def __init__(self, raw: bytes, name: str) -> None:
        super().__init__(raw)
        self.name = name


def read_image(entry: Entry, folder: Path) -> Path | bytes:
    """The image's file or, of a shard, its bytes."""
    if entry.offset == WHOLE:
        return folder / entry.file
    with (folder / entry.file).open("rb", buffering=0) as stream:
        return os.pread(stream.fileno(), entry.size, entry.offset)
