"""Archives of others: listed and unpacked so that nothing can be written outside the folder.

Members that are absolute, climb (``..``), are devices, or are links to outside refuse the whole archive: no honest
one has them. Links that stay inside are passed over. zip, and tar with any compression that Python reads.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import safe_id
from workflow_scripts.core.progress import Progress

# What the libraries raise on a file that ends too early or was altered; zipfile the last, on an unknown compression.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError)

Entry = tuple[str, int, Callable[[], IO[bytes]]]


def _member_name(archive: Path, name: str) -> str:
    """``name`` without a leading ``./``, if it stays in the folder it is unpacked to."""
    plain = name
    while plain.startswith("./"):
        plain = plain[2:]
    try:
        return safe_id(plain)
    except UserError as error:
        raise UserError(f"{archive}: holds {name!r}, which is no path inside a folder: do not trust it") from error


def _zip_entries(path: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            # zipfile turns a backslash into a slash on Windows alone; orig_filename is what the archive says.
            name = _member_name(path, info.orig_filename.removesuffix("/"))
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UserError(f"{path}: {name!r} is a device or a link: do not trust it")
            if info.flag_bits & 1:
                raise UserError(f"{path}: {name!r} is encrypted: unpack it yourself and repack it without a password")
            if not info.is_dir():
                yield name, info.file_size, lambda info=info: archive.open(info)


def _tar_entries(path: Path) -> Iterator[Entry]:
    with tarfile.open(path) as archive:
        for info in archive:
            if info.name in ("", "."):
                continue
            name = _member_name(path, info.name)
            try:
                # The library's own check, behind ours, of paths, links and kinds.
                tarfile.data_filter(info, "/nowhere")
            except tarfile.FilterError as error:
                raise UserError(f"{path}: {name!r} is a device or a link to outside: do not trust it") from error
            if info.isfile():
                yield name, info.size, lambda info=info: archive.extractfile(info)
        # tar ends before the compressed stream does, whose last bytes are its checksum.
        while archive.fileobj.read(1 << 20):
            pass


@contextmanager
def _entries(path: Path) -> Iterator[Iterator[Entry]]:
    """Name, size in bytes and opener of every file, in the archive's order; damage becomes one line."""
    if not path.is_file():
        raise UserError(f"{path}: no such archive")
    try:
        if zipfile.is_zipfile(path):
            yield _zip_entries(path)
        else:
            yield _tar_entries(path)
    except (*_DAMAGE, OSError) as error:
        # Decompressors raise an OSError without a number; the others are the disk's.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{path}: truncated, damaged or no archive ({reason}): get it again") from error


def contents(path: Path, keep: Callable[[str], bool] = lambda name: False) -> tuple[dict[str, int], dict[str, bytes]]:
    """The files in the archive with their sizes in bytes, in its order; and the contents of those to ``keep``.

    Every name is checked. Raises UserError for an archive that is damaged or would write outside its folder.
    """
    sizes: dict[str, int] = {}
    kept: dict[str, bytes] = {}
    with _entries(path) as entries:
        for name, size, opener in entries:
            sizes[name] = size
            if keep(name):
                with opener() as stream:
                    kept[name] = stream.read()
    return sizes, kept


def unpack(path: Path, folder: Path, targets: dict[str, str]) -> None:
    """Write the files that ``targets`` names to ``folder / targets[name]``.

    Every name of the archive is checked, wanted or not. Raises UserError as ``contents``, for a target that
    would leave ``folder``, and where a wanted file is not in the archive.
    """
    for target in targets.values():
        safe_id(target)
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
        raise UserError(f"{path}: {next(iter(missing))!r} is not in it ({len(missing)} files): get it again")
