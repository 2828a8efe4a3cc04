"""Record the digests of artifacts, and check artifacts before they are read.

The record of ``folder/name`` is ``folder/.digests/name``, which moves with its folder. A step writes it after its
outputs: if a step is killed in between, the artifact differs from its record, or has none, and is made again. It also
says what the artifact was made of, so that one which another config left in a folder is not taken for this config's.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_json

FOLDER = ".digests"
BYTES_PER_READ = 1 << 20
# Files that a thread hashes at a time: a folder may contain 100,000 small images.
FILES_PER_TASK = 64
# Reading waits on network file systems; more threads would slow down small files.
THREADS = 4


class Record(BaseModel):
    """What a step wrote, and what it made it of.

    Attributes:
        identity: of the settings, the code and the user's files that made it (``core.step.identity``); None if unknown,
            because the step was run by hand.
        inputs: the digest of each recorded artifact that the step read, by its path relative to the artifact's folder.
        files: the digest of each file by its path below the artifact, ``.`` for the artifact itself.
        seal: the digest of this record; None in records of older versions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: str
    identity: str | None = None
    inputs: dict[str, str] = {}
    files: dict[str, str]
    seal: str | None = None

    @property
    def digest(self) -> str:
        """The digest of the whole artifact."""
        return _digest(self.files)

    def sealed(self) -> "Record":
        """Return this record with its seal."""
        return self.model_copy(update={"seal": _digest(self.model_dump(exclude={"seal"}))})


def _digest(value: Any) -> str:
    """Return 32 hex digits over a value of JSON."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


def record_file(path: Path) -> Path:
    """Return where the record of an artifact, a file or a folder, is."""
    path = Path(os.path.abspath(path)) if path.name in ("", "..") else path
    return path.with_name(FOLDER) / path.name


def sha256(file: str | Path) -> str:
    """Return the digest of a file, of a link's target if it is not a file; "" if it does not exist."""
    digest = hashlib.sha256()
    try:
        # Twice as fast for small files as hashlib.file_digest, which makes a buffer for each.
        opened = os.open(file, os.O_RDONLY)
        try:
            while piece := os.read(opened, BYTES_PER_READ):
                digest.update(piece)
        finally:
            os.close(opened)
    except (FileNotFoundError, IsADirectoryError):
        return f"link to {os.readlink(file)}" if os.path.islink(file) else ""
    return digest.hexdigest()


def _files(folder: str, below: str = "") -> Iterator[str]:
    """Yield the path of each file below ``folder`` that its step wrote."""
    with os.scandir(os.path.join(folder, below)) as entries:
        for entry in entries:
            if entry.name not in (FOLDER, ".snakemake_timestamp"):
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(folder, f"{below}{entry.name}/")
                else:
                    yield below + entry.name


def digests(path: Path) -> dict[str, str]:
    """Return the digest of each file of an artifact by its path below it; every byte is read."""
    if not path.is_dir():
        return {".": digest} if (digest := sha256(path)) else {}
    names = sorted(_files(str(path)))
    tasks = [names[start : start + FILES_PER_TASK] for start in range(0, len(names), FILES_PER_TASK)]
    with ThreadPoolExecutor(THREADS) as threads:
        parts = threads.map(lambda task: [(name, sha256(os.path.join(path, name))) for name in task], tasks)
        return {name: digest for part in parts for name, digest in part if digest}


def record(path: Path, step: str, identity: str | None = None, inputs: Mapping[Path, str] | None = None) -> None:
    """Record an artifact as ``step`` has written it; without one, remove its record.

    Args:
        identity: of what made it.
        inputs: the digests of what the step read, as ``check`` returns them.
    """
    if path.is_file() or path.is_dir():
        relabel(path, Record(step=step, files=digests(path)), identity, inputs or {})
    else:
        record_file(path).unlink(missing_ok=True)


def relabel(path: Path, recorded: Record, identity: str | None, inputs: Mapping[Path, str]) -> None:
    """Write the record of an artifact with what made it, the arguments of ``record``."""
    read = {os.path.relpath(name, path.parent): digest for name, digest in sorted(inputs.items())}
    made = recorded.model_copy(update={"identity": identity, "inputs": read})
    write_json(made.sealed().model_dump(), record_file(path))


def read_record(path: Path) -> Record | None:
    """Return the record of an artifact, None if it has none; raises UserError if it is damaged."""
    file = record_file(path)
    try:
        recorded = Record.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        recorded = None
    if recorded is None or recorded.seal not in (None, recorded.sealed().seal):
        raise UserError(f"{file}: damaged, so nothing tells whether {path} is; delete both and run again")
    return recorded


def faults(path: Path, recorded: Record) -> list[str]:
    """Return each file of an artifact that differs from its record: ``images/a.png: changed``.

    Hidden files that were added belong to tools.
    """
    if not os.path.lexists(path):
        return [f"{path}: missing"]
    now = digests(path)
    kinds = {name: "changed" for name in recorded.files.keys() & now.keys() if recorded.files[name] != now[name]}
    kinds |= dict.fromkeys(recorded.files.keys() - now.keys(), "missing")
    added = now.keys() - recorded.files.keys()
    kinds |= {name: "added" for name in added if not any(part.startswith(".") for part in Path(name).parts)}
    return [f"{path / name}: {kind}" for name, kind in sorted(kinds.items())]


# The digests of each artifact's files as ``check`` has read them last.
_checked: dict[str, dict[str, str]] = {}


def checked_digest(file: Path) -> str | None:
    """Return the digest of a file in a folder as ``check`` has read it, None if it has not."""
    name = str(file)
    for artifact, files in _checked.items():
        if name.startswith(f"{artifact}/"):
            return files.get(name[len(artifact) + 1 :])
    return None


def check(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the digest of each artifact that has a record; what does not exist is not checked.

    Raises:
        UserError: an artifact differs from its record.
    """
    checked = {}
    _checked.clear()
    for path in paths:
        if os.path.lexists(path) and (recorded := read_record(path)):
            if wrong := faults(path, recorded):
                more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
                raise UserError(
                    f"{wrong[0]} since {recorded.step} wrote it{more}; delete {path} and run again or, "
                    f"if the change is intended, delete {record_file(path)}"
                )
            checked[path], _checked[str(path)] = recorded.digest, recorded.files
    return checked
