"""Get published files: from a local path, or downloaded into the cache by pooch and checked by
sha256.

The sha256 is the config's, else the published one. A file without one is not checked;
``dataset.json`` names its sha256.
"""

import hashlib
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from compclip.core.artifacts.files import room_for
from compclip.core.errors import UserError, require
from compclip.core.identity.digests import sha256 as sha256_of
from compclip.core.reading.documents import no_such

RETRIES = 2  # of a failed download
TIMEOUT = (20, 60)  # seconds to connect, seconds without a byte


@dataclass(frozen=True)
class FileLocation:
    """The location of a file: a path, a ``file://`` address or a remote address."""

    address: str
    sha256: str | None = None  # None: any
    name: str = ""  # of a download; by default, that in the address

    @property
    def is_remote(self) -> bool:
        return "://" in self.address and urlsplit(self.address).scheme != "file"

    def local(self, cache: Path) -> Path:
        """Return the path of the local file or of the download, which may not exist yet."""
        path = unquote(urlsplit(self.address).path)
        if not self.is_remote:
            return Path(path if "://" in self.address else self.address)
        # Addresses may differ only in their folders, and may contain characters that a file name
        # cannot.
        folder = hashlib.blake2b(self.address.encode(), digest_size=6).hexdigest()
        name = re.sub(r"[^\w.-]", "_", self.name or Path(path).name)
        return cache / "downloads" / folder / (name or "download")


def google_drive(number: str, resource_key: str) -> str:
    """Return the address of a file on Google Drive without the confirmation page for large
    downloads.
    """
    query = f"id={number}&export=download&confirm=t&resourcekey={resource_key}"
    return f"https://drive.usercontent.google.com/download?{query}"


def place_of(
    name: str, root: str | None, sha256: str | None, published: Mapping[str, FileLocation]
) -> FileLocation:
    """Return the location of a file; without a root, ``name`` may be a key of ``published``."""
    if root is None:
        if name not in published:
            return FileLocation(name, sha256)
        # A sha256 in the config takes precedence over the published one.
        location = published[name]
        return replace(location, sha256=sha256 or location.sha256, name=name)
    is_relative = "://" not in name and not Path(name).is_absolute()
    if not is_relative:
        return FileLocation(name, sha256)
    base = root.rstrip("/")
    return FileLocation(f"{base}/{name}", sha256)


def fetch(location: FileLocation, cache: Path) -> Path:
    """Return the local file of a location, after downloading it into ``cache`` if it is not
    there.
    """
    path = location.local(cache)
    if location.is_remote:
        _download(location.address, path, location.sha256)
        return path
    if not path.is_file():
        raise UserError(no_such(path))
    if location.sha256:
        actual = sha256_of(path)
        fault = f"sha256 is {actual}, expected {location.sha256}"
        remedy = "get it again, or correct the sha256"
        require(actual == location.sha256.lower(), path, fault, remedy)
    return path


def _download(address: str, target: Path, sha256: str | None) -> None:
    # Imported here, because configs are also read where no file is downloaded.
    import pooch

    remedy = (
        "check the address and the sha256, or download the file in a browser and give its "
        "path in the config"
    )
    # A registry of one file, which pooch downloads unless it is there with this sha256.
    files = pooch.create(
        target.parent,
        "",
        registry={target.name: sha256},
        urls={target.name: address},
        retry_if_failed=RETRIES,
    )
    # identity: the transfer must not be compressed.
    download = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}
    )
    try:
        with room_for(target):
            files.fetch(target.name, downloader=download)
    except (ValueError, OSError) as error:
        reason = textwrap.shorten(str(error), 400, placeholder=" …")
        raise UserError(f"{address}: {reason}; {remedy}") from error
    # Some servers answer with a page instead, such as Google Drive's confirmation.
    with target.open("rb") as file:
        is_page = file.read(100).lstrip().startswith(b"<")
    if is_page:
        target.unlink()
    require(not is_page, address, "the server sends a page instead of the file", remedy)
