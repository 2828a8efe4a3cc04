"""List and unpack archives so that nothing can be written outside the folder.

An archive is refused as a whole if a member has an absolute path or one with ``..``, is a device, or links to outside.
Links that stay inside are skipped. Reads zip, and tar with any compression that Python reads.
"""

import lzma
import posixpath
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from workflow_scripts.core import limits
from workflow_scripts.core.documents import no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import safe_id
from workflow_scripts.core.progress import Progress

# Raised for truncated or altered files; NotImplementedError by zipfile, for an unknown compression.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError)

Entry = tuple[str, int, Callable[[], IO[bytes]]]  # name, size in bytes, opener


def _member_name(archive: Path, name: str) -> str:
    """Return ``name`` without a leading ``./``; raises UserError if it leaves the folder it is unpacked to."""
    try:
        return safe_id(re.sub(r"^(\./)+", "", name))
    except UserError as error:
        raise UserError(
            f"{archive}: contains {name!r}, which is not a path inside a folder; do not trust it"
        ) from error


def _zip_entries(path: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            # On Windows, zipfile turns backslashes into slashes; orig_filename is the archive's own.
            name = _member_name(path, info.orig_filename.removesuffix("/"))
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UserError(f"{path}: {name!r} is a device or a link; do not trust it")
            if info.flag_bits & 1:
                raise UserError(f"{path}: {name!r} is encrypted; repack the archive without a password")
            if not info.is_dir():
                yield name, info.file_size, partial(archive.open, info)


def _tar_entries(path: Path) -> Iterator[Entry]:
    with tarfile.open(path) as archive:
        for info in archive:
            if info.name in ("", "."):
                continue
            name = _member_name(path, info.name)
            # tarfile.data_filter checks this too, but not before Python 3.11.4, and Debian 12 has 3.11.2.
            if info.issym() or info.islnk():
                target = posixpath.join(posixpath.dirname(name) if info.issym() else "", info.linkname)
                trusted = not posixpath.normpath(target).startswith(("/", ".."))
            else:
                trusted = info.isfile() or info.isdir()
            if not trusted:
                raise UserError(f"{path}: {name!r} is a device or a link to outside; do not trust it")
            if info.isfile():
                yield name, info.size, partial(cast(Callable[..., IO[bytes]], archive.extractfile), info)
        # The compressed stream ends after the tar, with its checksum.
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass


def _checked(path: Path, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries; raises UserError for a duplicate, of which tools keep another, and above the limits."""
    names, total = set[str](), 0
    small = max(limits.ARCHIVE_RATIO * path.stat().st_size, limits.ARCHIVE_SMALL_BYTES)
    for name, size, opener in entries:
        if name in names:
            raise UserError(f"{path}: contains {name!r} twice, perhaps with different content; repack it with one")
        names.add(name)
        total += size
        if len(names) > limits.ARCHIVE_MEMBERS:
            raise UserError(f"{path}: more files than {limits.limit('ARCHIVE_MEMBERS')}; split the archive")
        if size > limits.ARCHIVE_MEMBER_BYTES:
            fault = limits.over("ARCHIVE_MEMBER_BYTES", f"{name!r} has {size:,} bytes")
            raise UserError(f"{path}: {fault}; do not trust it")
        if total > small:
            fault = f"unpacks to more than {limits.limit('ARCHIVE_RATIO')} times its size"
            raise UserError(f"{path}: {fault}; do not trust it")
        yield name, size, opener


@contextmanager
def _entries(path: Path) -> Iterator[Iterator[Entry]]:
    """Give every file, in the archive's order; raises UserError for a damaged archive."""
    if not path.is_file():
        raise UserError(no_such(path, "archive"))
    try:
        yield _checked(path, _zip_entries(path) if zipfile.is_zipfile(path) else _tar_entries(path))
    except (*_DAMAGE, OSError) as error:
        # Decompressors raise OSError without a number; one with a number is the disk's.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{path}: truncated, damaged or not an archive ({reason}); get it again") from error


def contents(path: Path, keep: Callable[[str], bool] = lambda name: False) -> tuple[dict[str, int], dict[str, bytes]]:
    """Return the size in bytes of each file in the archive, in its order, and the contents of those to ``keep``."""
    sizes, kept = dict[str, int](), dict[str, bytes]()
    with _entries(path) as entries:
        for name, size, opener in entries:
            sizes[name] = size
            if keep(name):
                with opener() as stream:
                    kept[name] = stream.read()
    return sizes, kept


def unpack(path: Path, folder: Path, targets: dict[str, str]) -> None:
    """Write each file that ``targets`` names to ``folder / targets[name]``; raises UserError if one is missing."""
    for wanted in targets.values():
        safe_id(wanted)
    missing = dict(targets)
    with _entries(path) as entries, Progress(len(targets), "files unpacked") as progress:
        for name, _, opener in entries:
            if name not in targets:
                continue
            target = folder / targets[name]
            target.parent.mkdir(parents=True, exist_ok=True)
            with opener() as stream, target.open("wb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)
            missing.pop(name, None)
            progress.add()
    if missing:
        first, count = next(iter(missing)), len(missing)
        raise UserError(f"{path}: does not contain {first!r} ({count} files missing); get it again")
