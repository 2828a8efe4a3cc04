"""Images with long captions to train on, of other people's data sets (``sources`` says of which form).

``read_examples`` reads a source from its beginning to its end. ``open_examples`` does so once: it looks at every
image, cuts every caption into chunks, and keeps what it found, but for the images, in files that are mapped into
memory. From then on each example can be had by its number: an epoch is a permutation of all, a training that goes on
begins in the middle of one, and what must be held are eight bytes an example, however long their captions.

What has no caption or no readable image is left out, named and counted.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.compute as compute

from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint
from workflow_scripts.core.io import atomic
from workflow_scripts.core.progress import track
from workflow_scripts.core.seeds import rng
from workflow_scripts.specs.chunks import chunk_all, context
from workflow_scripts.specs.sources import (
    WHOLE,
    Entry,
    file_state,
    folder_of,
    look,
    read_entries,
    read_image,
    source_files,
)

# Examples that are written together.
BATCH = 1024
# Names of examples that were left out in a summary.
NAMED = 100

# But for the times, which are of one machine; what is made from the entries is the same on another one.
ENTRIES = arrow.schema(
    [(field, arrow.int64() if field in ("offset", "size") else arrow.string()) for field in Entry._fields[:-1]]
)
ENDS = arrow.schema([("ends", arrow.list_(arrow.int32()))])


@dataclass(frozen=True)
class Example:
    """An image, as its file or, of a tar, its bytes; a caption; and the image's name in its source."""

    image: Path | bytes
    text: str
    name: str


def read_examples(source: Path, images: Path | None = None) -> Iterator[Example]:
    """The examples of a source in its order, one at a time; at the end it logs how many cannot be used.

    images: the folder that paths are relative to; None: the source's own. Raises UserError for a source that is
    missing or damaged, and for a path that leaves the folder of images.
    """
    count, first = 0, ""
    for entry, image in look(read_entries(source), folder_of(source, images)):
        if not entry.fault:
            yield Example(image, entry.text, entry.name)
        else:
            count, first = count + 1, first or f"{entry.name}: {entry.fault}"
    if count:
        log.warning("%s: %d examples left out, first %s", source, count, first)


class Examples:
    """The usable examples of a source by number; their captions stay on the disk.

    Attributes:
        identity: of all that a training sees of them, their images too: one that goes on must find the same
        summary: how many there are, how many were left out, why, and the first hundred of these
    """

    def __init__(self, entries: Path, ends: Path, folder: Path) -> None:
        self.folder = folder
        self.entries, self.ends = _mapped(entries), _mapped(ends)["ends"]
        usable = compute.equal(self.entries["fault"], "")
        self.rows = np.flatnonzero(usable.to_numpy()).astype(np.int32)
        self.identity = ends.stem
        bad = self.entries.select(["name", "fault"]).filter(compute.invert(usable))
        reasons = Counter(row["fault"].split(" (")[0] for row in _rows(bad))
        self.summary = {
            "examples": len(self),
            "left_out": {
                "count": len(bad),
                "reasons": dict(sorted(reasons.items())),
                "names": [f"{row['name']}: {row['fault']}" for row in islice(_rows(bad), NAMED)],
            },
        }

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> tuple[Example, list[int]]:
        """An example and the ends of its caption's chunks (``chunks.chunk_ends``)."""
        row = int(self.rows[number])
        entry = Entry(*(column[row].as_py() for column in self.entries.columns))
        return Example(read_image(entry, self.folder), entry.text, entry.name), self.ends[row].as_py()

    def order(self, seed: int, epoch: int) -> np.ndarray:
        """(n,) the numbers of all examples in the order of an epoch, by the seed and the epoch alone."""
        return rng(seed, "specs", "order", epoch).permutation(len(self))

    def stream(self, seed: int, epoch: int, start: int = 0) -> Iterator[tuple[Example, list[int]]]:
        """The examples of an epoch behind its first ``start``, which are not read."""
        return (self[number] for number in self.order(seed, epoch)[start:])


def open_examples(source: Path, images: Path | None, model: str, cache: Path, processes: int) -> Examples:
    """The examples of a source; what was found of them is kept in the folder ``cache``.

    model: the spaCy pipeline that cuts the captions. The source is read anew where it has changed, and where any
    of its images is of another size or time, gone, or there at last. Raises UserError as ``read_examples``, and where
    no example can be used.
    """
    folder, files, kept = folder_of(source, images), source_files(source), cache / "specs"
    # Times and absolute paths: of what lies on this machine alone.
    stamps = [str((str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns)) for file in files]
    name = key(code_hash("workflow_scripts.specs.sources"), str(folder.resolve()), *stamps).hex()
    entries, times = kept / f"entries_{name}.arrow", kept / f"times_{name}.npy"
    if not (entries.is_file() and times.is_file()) or _changed(entries, np.load(times), folder):
        size = sum(file.stat().st_size for file in files)
        log.info("%s: %.0f MB; all captions and images are read once, some hundred images a second", source, size / 1e6)
        modified = array("q")

        def seen() -> Iterator[tuple]:
            for entry, _ in look(read_entries(source), folder):
                modified.append(entry.modified)
                yield entry[:-1]

        # The times take their place last: with those of before, a run that was killed in between begins again.
        with atomic(times) as own:
            with atomic(entries) as temporary:
                _write(temporary, ENTRIES, track(seen(), None, "examples"))
            with own.open("wb") as file:
                np.save(file, np.asarray(modified))
    table = _mapped(entries)
    ends = kept / f"ends_{key(context(model), fingerprint(entries)).hex()}.arrow"
    if not ends.is_file():
        log.info("cutting %d captions into chunks; %d processes, about a hundred a second each", len(table), processes)
        with Cache(kept / "chunks.sqlite") as chunks, atomic(ends) as temporary:
            texts = ("" if row["fault"] else row["text"] for row in _rows(table.select(["text", "fault"])))
            found = track(chunk_all(texts, model, chunks, processes), len(table), "captions")
            _write(temporary, ENDS, ((one,) for one in found))
    examples = Examples(entries, ends, folder)
    left_out = examples.summary["left_out"]
    log.info("%s: %d examples, %d left out", source, len(examples), left_out["count"])
    for line in left_out["names"][:3]:
        log.warning("left out: %s", line)
    if not len(examples):
        raise UserError(f"{source}: none of {len(table)} examples can be used; see that --images is their folder")
    return examples


def _mapped(file: Path) -> arrow.Table:
    with arrow.memory_map(str(file)) as mapped:
        return arrow.ipc.open_file(mapped).read_all()


def _rows(table: arrow.Table) -> Iterator[dict[str, Any]]:
    return (row for batch in table.to_batches(BATCH) for row in batch.to_pylist())


def _changed(entries: Path, times: np.ndarray, folder: Path) -> bool:
    """Whether a file of an image is another one now; shards are looked at by ``open_examples``."""
    table = _mapped(entries).select(["file", "offset", "size"])
    if len(times) != len(table):
        return True
    files = zip(_rows(table), times.tolist(), strict=True)
    return any(
        file_state(os.path.join(folder, row["file"])) != (row["size"], modified)
        for row, modified in files
        if row["file"] and row["offset"] == WHOLE
    )


def _write(path: Path, schema: arrow.Schema, rows: Iterable[tuple]) -> None:
    """Rows of a table that may be too large to hold, uncompressed, to be mapped."""
    rows = iter(rows)
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, schema) as writer:
        while part := list(islice(rows, BATCH)):
            writer.write_batch(arrow.record_batch([list(column) for column in zip(*part, strict=True)], schema=schema))
