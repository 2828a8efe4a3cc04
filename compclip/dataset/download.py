"""Get files that others publish: from a local path, or downloaded into the cache by pooch and checked by sha256.

The sha256 is the config's, else the published one. A file that has neither is taken as it is; ``dataset.json`` names
its sha256.
"""

import hashlib
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pooch

from compclip.core.digests import sha256 as sha256_of
from compclip.core.documents import no_such
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.io import room_for

RETRIES = 2  # of a failed download
TIMEOUT = (20, 60)  # seconds to connect, seconds without a byte


@dataclass(frozen=True)
class Published:
    """Addresses, tried in order, and the sha256 published for their file."""

    addresses: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Candidate:
    """One place where a file may be; ``name`` is the file's, if the address has none."""

    address: str
    name: str = ""
    sha256: str | None = None
    checked: str = "unchecked"  # where the sha256 comes from: given, published or unchecked

    def local(self, cache: Path) -> Path:
        """Return the local file, which may not exist, or not yet."""
        return download_place(self.address, cache, self.name) if is_remote(self.address) else local_path(self.address)


def google_drive(number: str, resource_key: str = "") -> str:
    """Return the address of a file on Google Drive that skips the page which asks to confirm large downloads."""
    key = resource_key and f"&resourcekey={resource_key}"
    return f"https://drive.usercontent.google.com/download?id={number}&export=download&confirm=t{key}"


def is_remote(address: str) -> bool:
    """Return whether ``address`` is neither a plain path nor a ``file://`` address."""
    return "://" in address and urlsplit(address).scheme != "file"


def local_path(address: str) -> Path:
    """Return the path of a plain path or a ``file://`` address."""
    return Path(unquote(urlsplit(address).path) if "://" in address else address)


def download_place(address: str, cache: Path, name: str = "") -> Path:
    """Return the file in ``cache`` for a download of ``address``; ``name`` defaults to the address's own."""
    # Addresses may differ only in their folders, and may contain characters that a file name cannot.
    folder = cache / "downloads" / hashlib.blake2b(address.encode(), digest_size=6).hexdigest()
    name = name or Path(unquote(urlsplit(address).path)).name
    return folder / (re.sub(r"[^\w.-]", "_", name) or "download")


def candidates(
    names: str | list[str], root: str | None, sha256: str | None, published: Mapping[str, Published]
) -> list[Candidate]:
    """Return the places where a file may be, in order; without a root, ``names`` may be keys of ``published``."""
    places = []
    for name in [names] if isinstance(names, str) else names:
        known = published.get(name) if root is None else None
        expected = sha256 or (known and known.sha256) or None
        checked = "given" if sha256 else "published" if expected else "unchecked"
        if known:
            places += [Candidate(address, name, expected, checked) for address in known.addresses]
        else:
            below = root is not None and "://" not in name and not Path(name).is_absolute()
            address = f"{root.rstrip('/')}/{name}" if root is not None and below else name
            places.append(Candidate(address, "", expected, checked))
    return places


def unchecked(places: Iterable[Candidate]) -> list[Path | None]:
    """Return the local files without a sha256 in the config."""
    return [local_path(p.address) for p in places if p.checked == "unchecked" and not is_remote(p.address)]


def obtain(places: Sequence[Candidate], cache: Path) -> tuple[Path, dict[str, str]]:
    """Return the file from the first place that has it, and what ``dataset.json`` tells of it.

    Local files and earlier downloads come first.
    """
    failures: list[str] = []
    for place in sorted(places, key=lambda place: not place.local(cache).is_file()):
        try:
            path = fetch(place.address, cache, place.sha256, place.name)
            return path, {"sha256": (place.sha256 or sha256_of(path)).lower(), "sum": place.checked}
        except UserError as error:
            failures.append(str(error))
            if len(failures) < len(places):
                log.warning("%s; trying the next address", error)
    raise UserError("; ".join(failures))


def fetch(address: str, cache: Path, sha256: str | None = None, name: str = "") -> Path:
    """Return the local file of ``address``, downloaded into ``cache`` unless it is there already.

    Args:
        sha256: expected digest; None for any.
        name: file name of the download, if the address has none.
    """
    path = Candidate(address, name).local(cache)
    if is_remote(address):
        _download(address, path, sha256)
    elif not path.is_file():
        raise UserError(no_such(path))
    elif sha256 and (actual := sha256_of(path)) != sha256.lower():
        raise UserError(f"{path}: sha256 is {actual}, expected {sha256}; get it again, or correct the sha256")
    return path


def _download(address: str, target: Path, sha256: str | None) -> None:
    remedy = "check the address and the sha256, or download the file in a browser and give its path in the config"
    files = pooch.create(
        target.parent, "", registry={target.name: sha256}, urls={target.name: address}, retry_if_failed=RETRIES
    )
    # Identity: the bytes of the file, not of a compressed transfer.
    download = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}
    )
    try:
        with room_for(target):
            files.fetch(target.name, downloader=download)
    except (ValueError, OSError) as error:
        raise UserError(f"{address}: {textwrap.shorten(str(error), 400, placeholder=' …')}; {remedy}") from error
    with target.open("rb") as file:
        is_page = file.read(100).lstrip().startswith(b"<")
    if is_page:
        target.unlink()
    require(not is_page, address, "the server sends a page instead of the file", remedy)
