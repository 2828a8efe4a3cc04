"""Record the digests of artifacts, and check artifacts before they are read.

The record of ``folder/name`` is ``folder/.digests/name``, which moves with its folder. A step
writes it after its outputs: if a step is killed in between, the artifact differs from its record,
or has none, and is made again.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from compclip.core.artifacts.sealed import read_sealed, seal, sealed
from compclip.core.errors import UserError, require

FOLDER = ".digests"
# Files hashed at once, since network file systems are slow to answer; more threads make small files
# dearer.
HASHED_AT_ONCE = 2
READ_AT_ONCE = 1 << 16  # bytes
# In nanoseconds: a minute before this process began, since clocks of hosts may differ.
BEGUN = time.time_ns() - 60 * 10**9


class Record(BaseModel):
    """What a step wrote and from which inputs; the file of a record is sealed.

    Attributes:
        code: the identity of the step's code (``core.identity.code``); None if the step was run by
            hand.
        inputs: the digest of each recorded artifact that the step read, by its path relative to the
            artifact's folder.
        files: the digest of each file by its path below the artifact, ``.`` for the artifact
            itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: str
    code: str | None = None
    inputs: dict[str, str] = {}
    files: dict[str, str]

    @property
    def digest(self) -> str:
        """The digest of the whole artifact."""
        return seal(json.dumps(self.files, sort_keys=True).encode()).hexdigest()


def record_file(path: Path) -> Path:
    """Return the path of the record of an artifact, which is a file or a folder."""
    path = Path(os.path.abspath(path)) if path.name in ("", "..") else path
    return path.with_name(FOLDER) / path.name


def sha256(file: str | Path) -> str:
    """Return the digest of a file, of a link's target if it is not a file; "" if it does not
    exist.
    """
    try:
        # hashlib.file_digest clears a larger buffer for each file, which costs more than to hash a
        # small image.
        with open(file, "rb", buffering=0) as opened:
            digest = hashlib.sha256()
            for block in iter(partial(opened.read, READ_AT_ONCE), b""):
                digest.update(block)
            return digest.hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        return f"link to {os.readlink(file)}" if os.path.islink(file) else ""


def has_changed(file: str | Path, digest: str) -> bool:
    """Return whether a file has changed since this process has found its ``digest``."""
    status = os.stat(file)
    # The first is the time of creation on Windows; the second can be set, as copying does.
    if max(status.st_ctime_ns, status.st_mtime_ns) < BEGUN:
        return False
    return sha256(file) != digest


def _files(folder: str) -> Iterator[str]:
    """Yield the path of each file below ``folder`` that its step wrote."""
    # Folders that are not listed yet, relative to ``folder``.
    subfolders = [""]
    while subfolders:
        subfolder = subfolders.pop()
        with os.scandir(os.path.join(folder, subfolder)) as entries:
            for entry in entries:
                if entry.name in (FOLDER, ".snakemake_timestamp"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    subfolders.append(f"{subfolder}{entry.name}/")
                else:
                    yield subfolder + entry.name


def digests(path: Path) -> dict[str, str]:
    """Return the digest of each file of an artifact by its path below it; every byte is read."""
    if not path.is_dir():
        digest = sha256(path)
        return {".": digest} if digest else {}
    names = sorted(_files(str(path)))
    # A task for each file would cost more than to hash it.
    shares = [names[first::HASHED_AT_ONCE] for first in range(HASHED_AT_ONCE)]

    def digests_of(share: list[str]) -> list[str]:
        return [sha256(os.path.join(path, name)) for name in share]

    found: dict[str, str] = {}
    with ThreadPoolExecutor(HASHED_AT_ONCE) as threads:
        for share, share_digests in zip(shares, threads.map(digests_of, shares), strict=True):
            found.update(zip(share, share_digests, strict=True))
    # A file that has disappeared since it was listed has none.
    return {name: digest for name, digest in sorted(found.items()) if digest}


def record(
    path: Path, step: str, code: str | None = None, inputs: Mapping[Path, str] | None = None
) -> None:
    """Record the artifact that ``step`` has written; if there is none, remove its record.

    Args:
        code: the identity of the step's code.
        inputs: the digests of what the step read, as ``check`` returns them.
    """
    if path.is_file() or path.is_dir():
        # Relative, so that a results folder can be moved.
        relative = {
            os.path.relpath(name, path.parent): digest
            for name, digest in sorted((inputs or {}).items())
        }
        content = Record(step=step, code=code, inputs=relative, files=digests(path))
        with sealed(record_file(path)) as file:
            file.write(content.model_dump_json(indent=1).encode())
    else:
        record_file(path).unlink(missing_ok=True)


def read_record(path: Path) -> Record | None:
    """Return the record of an artifact, None if it has none; raises UserError if it is damaged."""
    file = record_file(path)
    if not file.is_file():
        return None
    text = read_sealed(file)
    require(text, file, f"damaged, so {path} cannot be verified", "make it again")
    return Record.model_validate_json(text or b"")


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each file of these artifacts, by its path, as recorded; none without a
    record.
    """
    digest_by_path: dict[str, str] = {}
    for path in paths:
        recorded = read_record(path)
        if recorded:
            for name, digest in recorded.files.items():
                digest_by_path[os.path.join(path, name)] = digest
    return digest_by_path


def faults(path: Path, recorded: Record) -> list[str]:
    """Return each file of an artifact that differs from its record: ``images/a.png: changed``.

    Added hidden files are ignored, because tools write them.
    """
    if not os.path.lexists(path):
        return [f"{path}: missing"]
    expected = recorded.files
    actual = digests(path)
    changes: dict[str, str] = {}
    for name in expected.keys() | actual.keys():
        if name not in actual:
            changes[name] = "missing"
        elif name not in expected:
            if not _is_hidden(name):
                changes[name] = "added"
        elif actual[name] != expected[name]:
            changes[name] = "changed"
    return [f"{path / name}: {change}" for name, change in sorted(changes.items())]


def _is_hidden(name: str) -> bool:
    return any(component.startswith(".") for component in Path(name).parts)


def check(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the digest of each artifact that has a record; what does not exist is not checked.

    Raises:
        UserError: an artifact differs from its record.
    """
    checked = {}
    for path in paths:
        recorded = read_record(path) if os.path.lexists(path) else None
        if recorded is None:
            continue
        differences = faults(path, recorded)
        if differences:
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            raise UserError(
                f"{differences[0]} since {recorded.step} wrote it{more}; delete {path} and run "
                f"again or, if the change is intended, delete {record_file(path)}"
            )
        checked[path] = recorded.digest
    return checked
