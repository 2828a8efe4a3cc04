"""List and unpack zip and tar archives without writing outside the folder.

An archive is refused if a member has an absolute path or a path with ``..``, or if its files have
more bytes than ``limits.ARCHIVE_RATIO`` allows. Links and devices are never created: only regular
files of a tar are read, and all members of a zip are read as files. The standard library reads at
most the size that the archive states for a file.
"""

import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from compclip.core.artifacts.files import safe_id
from compclip.core.errors import UserError, require
from compclip.core.progress import Progress
from compclip.core.reading.documents import no_such, require_expansion

# Raised for truncated or altered files; zipfile raises NotImplementedError for unknown compression
# and RuntimeError for encrypted files.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError)

ArchiveEntry = tuple[str, int, Callable[[], IO[bytes]]]  # name, size in bytes, opener


def _zip_entries(path: Path) -> Iterator[ArchiveEntry]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, info.file_size, partial(archive.open, info)


def _tar_entries(path: Path) -> Iterator[ArchiveEntry]:
    with tarfile.open(path) as archive:
        # It returns None for other members than files.
        open_file = cast(Callable[..., IO[bytes]], archive.extractfile)
        for info in archive:
            if info.isfile():
                yield info.name, info.size, partial(open_file, info)
        # The compressed stream ends after the tar, with its checksum.
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass


def _checked_entries(path: Path, entries: Iterator[ArchiveEntry]) -> Iterator[ArchiveEntry]:
    total = 0
    for raw_name, size, opener in entries:
        # `tar c .` puts ./ before each name.
        name = re.sub(r"^(\./)+", "", raw_name)
        try:
            safe_id(name)
        except UserError as error:
            fault = f"contains {raw_name!r}, a path outside its folder"
            raise UserError(f"{path}: {fault}; do not trust it") from error
        total += size
        require_expansion(path, total)
        yield name, size, opener


@contextmanager
def _entries(path: Path) -> Iterator[Iterator[ArchiveEntry]]:
    """Open an archive and yield its regular files, in order; raises UserError if it is damaged or
    hostile.
    """
    if not path.is_file():
        raise UserError(no_such(path, "archive"))
    try:
        entries = _zip_entries(path) if zipfile.is_zipfile(path) else _tar_entries(path)
        yield _checked_entries(path, entries)
    except (*_DAMAGE, OSError) as error:
        # Decompressors raise OSError without a number; an OSError with a number comes from the
        # disk.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        fault = f"truncated, damaged or not an archive ({reason})"
        raise UserError(f"{path}: {fault}; get it again") from error


def contents(
    path: Path, keep: Callable[[str], bool] = lambda name: False
) -> tuple[dict[str, int], dict[str, bytes]]:
    """Return the size in bytes of each file in the archive, in its order, and the contents of those
    to ``keep``.
    """
    sizes = dict[str, int]()
    files = dict[str, bytes]()
    with _entries(path) as entries:
        for name, size, opener in entries:
            sizes[name] = size
            if not keep(name):
                continue
            # Not more than the stated size, by which the archive was accepted.
            with opener() as stream:
                files[name] = stream.read(size)
    return sizes, files


def unpack(path: Path, folder: Path, targets: dict[str, str]) -> None:
    """Write each file that ``targets`` names to ``folder / targets[name]``; raises UserError if one
    is missing.
    """
    missing = {name: folder / safe_id(target) for name, target in targets.items()}
    with _entries(path) as entries, Progress(len(targets), "files unpacked") as progress:
        for name, _, opener in entries:
            target = missing.pop(name, None)
            if target is None:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with opener() as stream, target.open("wb") as file:
                shutil.copyfileobj(stream, file)
            progress.add()
    first = ", ".join(map(repr, [*missing][:3]))
    require(not missing, path, f"does not contain {first}", "get it again")
