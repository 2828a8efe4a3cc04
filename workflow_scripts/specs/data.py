"""Images with long captions for training, from other people's data sets (``sources`` lists the formats).

``open_examples`` reads a source once: it checks every image, cuts every caption into chunks, and keeps the result,
without the images, in memory-mapped files, so that each example takes a few bytes of memory. Examples without a
caption or a readable image are skipped, named and counted.
"""

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as arrow
import pyarrow.compute as compute

from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint
from workflow_scripts.core.progress import track
from workflow_scripts.core.sealed import SEAL, is_whole, sealed
from workflow_scripts.core.seeds import rng
from workflow_scripts.specs.chunks import chunk_all, context
from workflow_scripts.specs.sources import (
    OWN_FILE,
    Entry,
    check_images,
    file_state,
    folder_of,
    read_entries,
    read_image,
    source_files,
)

ROWS_WRITTEN = 1024  # together
SKIPPED_NAMES = 100  # in a summary

# Without the modification times, so that the same entries on another machine have the same fingerprint.
ENTRIES = arrow.schema(
    [(field, arrow.int64() if field in ("offset", "size") else arrow.string()) for field in Entry._fields[:-1]]
)
ENDS = arrow.schema([("ends", arrow.list_(arrow.int32()))])


@dataclass(frozen=True)
class Example:
    """An image (its file or, from a tar, its bytes), a caption, and the image's name in its source."""

    image: Path | bytes
    text: str
    name: str


class Examples:
    """The usable examples of a source by number; ``identity`` is of everything that a training sees of them."""

    def __init__(self, entries: Path, ends: Path, folder: Path) -> None:
        self.folder = folder
        self.entries, self.ends = _mapped(entries), _mapped(ends)["ends"]
        usable = compute.equal(self.entries["fault"], "")
        self.rows = np.flatnonzero(usable.to_numpy()).astype(np.int32)
        self.identity = ends.stem
        skipped = self.entries.select(["name", "fault"]).filter(compute.invert(usable))
        reasons = Counter(row["fault"].split(" (")[0] for row in _rows(skipped))
        self.skipped = len(skipped)
        self.skipped_names = [f"{row['name']}: {row['fault']}" for row in islice(_rows(skipped), SKIPPED_NAMES)]
        self.summary = {
            "examples": len(self),
            "left_out": {"count": self.skipped, "reasons": dict(sorted(reasons.items())), "names": self.skipped_names},
        }

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> tuple[Example, list[int]]:
        """Return an example and the ends of its caption's chunks (``phrases.chunk_ends``)."""
        row = int(self.rows[number])
        entry = Entry(*(column[row].as_py() for column in self.entries.columns))
        return Example(read_image(entry, self.folder), entry.text, entry.name), self.ends[row].as_py()

    def order(self, seed: int, epoch: int) -> np.ndarray:
        """(n,) the numbers of all examples in the order of an epoch, which depends on seed and epoch alone."""
        return rng(seed, "specs", "order", epoch).permutation(len(self))

    def stream(self, seed: int, epoch: int, start: int = 0) -> Iterator[tuple[Example, list[int]]]:
        """Yield the examples of an epoch after its first ``start``, which are not read."""
        return (self[number] for number in self.order(seed, epoch)[start:])


def open_examples(source: Path, images: Path | None, model: str, cache: Path, processes: int) -> Examples:
    """Return the examples of a source, indexed below the folder ``cache``; spaCy's ``model`` cuts the captions.

    The source is indexed again if its files, or the size, time or presence of any image, changed.
    """
    folder = folder_of(source, images)
    entries = _index_entries(source, folder, cache / "specs")
    ends = _index_chunks(entries, model, cache / "specs", processes)
    examples = Examples(entries, ends, folder)
    log.info("%s: %d examples, %d skipped", source, len(examples), examples.skipped)
    for line in examples.skipped_names[:3]:
        log.warning("skipped: %s", line)
    if not len(examples):
        raise UserError(
            f"{source}: none of {examples.skipped} examples is usable; check that --images is the folder of the images"
        )
    return examples


def _index_entries(source: Path, folder: Path, index: Path) -> Path:
    """Return the file of a source's entries, made if it is absent or out of date."""
    files = source_files(source)
    # Times and absolute paths are only valid on this machine.
    stamps = [str((str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns)) for file in files]
    code = code_hash("workflow_scripts.specs.sources:read_entries", "workflow_scripts.specs.sources:check_images")
    name = key(code, str(folder.resolve()), *stamps).hex()
    entries, times = index / f"entries_{name}.arrow", index / f"times_{name}.npy"
    again = "the source is indexed again"
    if is_whole(entries, again) and is_whole(times, again) and not _changed(entries, np.load(times), folder):
        return entries
    size = sum(file.stat().st_size for file in files)
    log.info("%s: %.0f MB; indexing captions and images, some hundred images a second", source, size / 1e6)
    modified = array("q")

    def rows() -> Iterator[tuple]:
        for entry in check_images(read_entries(source), folder):
            modified.append(entry.modified)
            yield entry[:-1]

    # The times are moved into place last: a run killed in between leaves outdated times and starts again.
    with sealed(times) as times_file:
        with sealed(entries) as file:
            _write(file, ENTRIES, track(rows(), None, "examples"))
        np.save(times_file, np.asarray(modified))
    return entries


def _index_chunks(entries: Path, model: str, index: Path, processes: int) -> Path:
    """Return the file of the ends of the chunks of all captions in ``entries``, made if it is absent."""
    ends = index / f"ends_{key(context(model), fingerprint(entries)).hex()}.arrow"
    if not is_whole(ends, "the captions are cut again"):
        table = _mapped(entries)
        log.info("cutting %d captions into chunks; %d processes, about a hundred a second each", len(table), processes)
        with Cache(index / "chunks.sqlite") as cache, sealed(ends) as file:
            texts = ("" if row["fault"] else row["text"] for row in _rows(table.select(["text", "fault"])))
            chunks = track(chunk_all(texts, model, cache, processes), len(table), "captions")
            _write(file, ENDS, ((caption,) for caption in chunks))
    return ends


def _mapped(file: Path) -> arrow.Table:
    with arrow.memory_map(str(file)) as mapped:
        return arrow.ipc.open_file(mapped.read_buffer(mapped.size() - SEAL)).read_all()


def _rows(table: arrow.Table) -> Iterator[dict[str, Any]]:
    return (row for batch in table.to_batches(ROWS_WRITTEN) for row in batch.to_pylist())


def _changed(entries: Path, times: np.ndarray, folder: Path) -> bool:
    """Return whether an image's own file changed; changes of shards give the index another name."""
    table = _mapped(entries).select(["file", "offset", "size"])
    return len(times) != len(table) or any(
        file_state(os.path.join(folder, row["file"])) != (row["size"], modified)
        for row, modified in zip(_rows(table), times.tolist(), strict=True)
        if row["file"] and row["offset"] == OWN_FILE
    )


def _write(file: IO[bytes], schema: arrow.Schema, rows: Iterable[tuple]) -> None:
    """Write rows, which may be too many for memory, uncompressed, so that the file can be memory-mapped."""
    rows = iter(rows)
    with arrow.ipc.new_file(file, schema) as writer:
        while batch := list(islice(rows, ROWS_WRITTEN)):
            writer.write_batch(arrow.record_batch(list(map(list, zip(*batch, strict=True))), schema=schema))
