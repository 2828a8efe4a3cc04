"""Read other people's data sets of images with captions, and check whether each image can be read.

A source is a file, or a folder of files of one kind, which are read in the order of their names:

- ``.json``, as ShareGPT4V: a list of ``{"image": path, "conversations": [{"from": "human", …}, {"from": "gpt",
  "value": caption}]}``;
- ``.parquet``: columns ``image`` (a path) and ``text``;
- ``.tar``, as WebDataset: each sample is an image and a caption, ``000017.jpg`` and ``000017.txt``.

Paths are relative to the folder of images. Memory does not grow with the number of entries.
"""

import hashlib
import io
import os
import stat
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as arrow
import pyarrow.parquet as pq

from workflow_scripts.core import limits
from workflow_scripts.core.documents import json_items, no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import safe_id
from workflow_scripts.core.pictures import SUFFIXES, BrokenImage, image_size

PARQUET_ROWS = 1024  # read together
IMAGES_IN_MEMORY = 16  # checked by half as many threads
OWN_FILE = -1  # the offset of an image that is a file of its own


class Entry(NamedTuple):
    """What a source says about an example."""

    name: str  # of the image, or the place in the source if it gives none (``record 3``)
    text: str  # the caption; "" if there is none
    file: str = ""  # path below the folder of images, or of the shard below the folder of the source
    offset: int = OWN_FILE  # of the image's bytes in a shard
    size: int = -1  # of the image in bytes; -1 if there is no image
    fault: str = ""  # why the example cannot be used, details in parentheses; "" if it can
    digest: str = ""  # of the image's bytes, for usable examples
    modified: int = -1  # modification time of the image's file in ns, on this machine; -1 if there is none


def read_entries(source: Path) -> Iterator[Entry]:
    """Yield the entries of a source's files, without opening the images."""
    for file in source_files(source):
        yield from _READERS[file.suffix](file)


def source_files(source: Path) -> list[Path]:
    """Return the files of a source, sorted by name; raises UserError if there are none or several kinds."""
    if source.is_file() and source.suffix in _READERS:
        return [source]
    files = sorted(p for p in source.glob("*") if p.suffix in _READERS and p.is_file()) if source.is_dir() else []
    kinds = sorted({file.suffix for file in files})
    if len(kinds) > 1:
        raise UserError(f"{source}: has {' and '.join(kinds)} files; choose one file, or a folder of one kind")
    if not files:
        packed = ".tar." in source.name or any(source.glob("*.tar.*"))
        hint = "; decompress compressed shards with gunzip" if packed else ""
        raise UserError(f"{source}: neither a file nor a folder of files of a known kind: {', '.join(_READERS)}{hint}")
    return files


def folder_of(source: Path, images: Path | None) -> Path:
    """Return the folder that the files of entries are relative to."""
    folder = source if source.is_dir() else source.parent
    if images is None or source_files(source)[0].suffix == ".tar":
        return folder
    if not images.is_dir():
        raise UserError(no_such(images, "folder of images"))
    return images


def _entry(source: Path, number: int, image: Any, text: Any) -> Entry:
    where = f"{source.name}: record {number}"
    if not isinstance(image, str) or not image:
        return Entry(where, "", fault="names no image")
    try:
        file = safe_id(image.removeprefix("./"))
    except UserError as error:
        raise UserError(
            f"{source}: record {number}: image path {image!r} is outside the folder of images; correct it"
        ) from error
    if not isinstance(text, str) or not text.strip():
        return Entry(image, "", file, fault=f"no caption ({where})")
    # Half a character cannot be written to artifacts.
    return Entry(image, text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip(), file)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _json(file: Path) -> Iterator[Entry]:
    number = 0
    try:
        for number, record in enumerate(json_items(file), 1):
            record = record if isinstance(record, dict) else {}
            turns = record.get("conversations")
            turns = [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
            # The caption is the model's first turn.
            text = next((turn.get("value") for turn in turns if turn.get("from") == "gpt"), None)
            yield _entry(file, number, record.get("image"), text)
    except ValueError as error:
        raise UserError(
            f"{file}: invalid JSON after record {number} ({_reason(error)}); correct it or download it again"
        ) from error


def _parquet(file: Path) -> Iterator[Entry]:
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as table:
            columns = table.schema_arrow.names
            for column in ("image", "text"):
                if column not in columns:
                    raise UserError(f"{file}: no column {column!r}; columns: {', '.join(map(repr, columns)) or 'none'}")
            batches = table.iter_batches(PARQUET_ROWS, columns=["image", "text"])
            for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
                yield _entry(file, number, row["image"], row["text"])
    except (arrow.ArrowException, OSError) as error:
        raise UserError(f"{file}: not a readable Parquet file ({_reason(error)}); download it again") from error


def _tar(file: Path) -> Iterator[Entry]:
    try:
        # Only uncompressed, because images are read at their offset.
        with tarfile.open(file, "r:") as archive:
            sample: dict[str, Any] = {}
            names = set[str]()
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # otherwise all members stay in memory
                name = _member_name(file, member)
                if not member.isreg() or member.sparse is not None:
                    continue
                if name in names:
                    raise UserError(f"{file}: contains {name!r} twice; repack it with one")
                names.add(name)
                if len(names) > limits.ARCHIVE_MEMBERS:
                    raise UserError(f"{file}: more files than {limits.limit('ARCHIVE_MEMBERS')}; split the archive")
                folder, _, base = name.rpartition("/")
                stem, _, suffix = base.partition(".")
                stem, suffix = f"{folder}/{stem}".lstrip("/"), f".{suffix.lower()}"
                if sample and stem != sample["name"]:
                    yield _sample(file, sample)
                    sample = {}
                sample["name"] = stem
                if suffix == ".txt" and (content := archive.extractfile(member)):
                    sample["text"] = content.read()
                elif suffix in SUFFIXES:
                    sample |= {"offset": member.offset_data, "size": member.size}
            if sample:
                yield _sample(file, sample)
            # tarfile takes a damaged header for the end of the archive, which must be zeros.
            assert archive.fileobj is not None
            archive.fileobj.seek(archive.offset)  # type: ignore[attr-defined]
            if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("no end-of-archive marker after the last member")
    except tarfile.TarError as error:
        raise UserError(f"{file}: truncated, damaged or not a tar file ({error}); download it again") from error


def _member_name(file: Path, member: tarfile.TarInfo) -> str:
    name = member.name
    while name.startswith("./"):
        name = name[2:]
    try:
        return name if name in ("", ".") and member.isdir() else safe_id(name)
    except UserError as error:
        raise UserError(f"{file}: unsafe member path {member.name!r}; do not use this file") from error


def _sample(file: Path, sample: dict[str, Any]) -> Entry:
    name = f"{file.stem}/{sample['name']}"  # each shard may have the same names
    if "offset" not in sample:
        return Entry(name, "", file.name, fault="no image")
    place = file.name, sample["offset"], sample["size"]
    try:
        text = sample.get("text", b"").decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return Entry(name, "", *place, fault="the caption is not UTF-8")
    return Entry(name, text, *place, fault="" if text else "no caption")


_READERS: dict[str, Callable[[Path], Iterator[Entry]]] = {".json": _json, ".parquet": _parquet, ".tar": _tar}


def check_images(entries: Iterable[Entry], folder: Path) -> Iterator[Entry]:
    """Yield the entries in order, completed by what their images' files say."""
    pending: deque[Future[Entry]] = deque()
    with ThreadPoolExecutor(IMAGES_IN_MEMORY // 2) as pool:
        try:
            for entry in entries:
                pending.append(pool.submit(_check, entry, folder))
                if len(pending) == IMAGES_IN_MEMORY:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _check(entry: Entry, folder: Path) -> Entry:
    if not entry.file:
        return entry
    image = read_image(entry, folder)
    if isinstance(image, bytes):
        entry = entry._replace(size=len(image))
    else:
        size, modified = file_state(image)  # before reading, so that a later change is noticed the next time
        entry = entry._replace(size=size, modified=modified)
    if entry.fault:
        return entry
    try:
        if entry.size < 0:
            raise BrokenImage("no such file")
        raw = _Named(image, entry.name) if isinstance(image, bytes) else _Named(image.read_bytes(), image.name)
        image_size(raw)
    except (BrokenImage, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return entry._replace(fault=f"not a readable image ({reason})")
    return entry._replace(digest=hashlib.blake2b(raw.getbuffer(), digest_size=16).hexdigest())


def file_state(path: str | Path) -> tuple[int, int]:
    """Return a file's size in bytes and its modification time in ns; -1 and -1 if it is not a file."""
    try:
        state = os.stat(path)
    except OSError:
        return -1, -1
    return (state.st_size, state.st_mtime_ns) if stat.S_ISREG(state.st_mode) else (-1, -1)


class _Named(io.BytesIO):
    def __init__(self, raw: bytes, name: str) -> None:
        super().__init__(raw)
        self.name = name


def read_image(entry: Entry, folder: Path) -> Path | bytes:
    """Return the path of the image or, from a shard, its bytes."""
    if entry.offset == OWN_FILE:
        return folder / entry.file
    with (folder / entry.file).open("rb", buffering=0) as stream:
        return os.pread(stream.fileno(), entry.size, entry.offset)
