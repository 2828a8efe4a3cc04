"""Files from an address: https, Google Drive, ``file://`` or a plain path; resumed after a break, checked by sha256.

A download lies in the cache as ``NAME.part`` until it is whole, with ``NAME.part.json`` beside it, which holds
what the server called this version: a part of another version is never continued. Where a server sends Google
Drive's page that asks to confirm a large download, its form is sent; any other page is no file, and an error.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit, urlunsplit

import requests
import urllib3
from filelock import FileLock

from workflow_scripts.core.cli import log
from workflow_scripts.core.disk import check_space, size_text
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import room_for, write_json
from workflow_scripts.core.progress import Progress

ATTEMPTS = 6
TIMEOUT = (20, 60)  # seconds to connect, seconds without a byte
CHUNK = 1 << 18
PAGE = 1 << 20  # bytes read of a page that is no file
# Answers after which asking again may help.
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class _Interrupted(Exception):
    """The transfer broke; what has arrived is kept."""


def join(root: str, name: str) -> str:
    """``name`` below ``root``, a folder or an address; ``name`` alone where it is an address or absolute itself."""
    if "://" in name or Path(name).is_absolute():
        return name
    return f"{root.rstrip('/')}/{name}"


def is_remote(address: str) -> bool:
    """Whether ``address`` is on another machine: neither a plain path nor a ``file://`` address."""
    return "://" in address and urlsplit(address).scheme != "file"


def local_path(address: str) -> Path:
    """Where the file of an address is that is not remote; UserError for a ``file://`` of another machine."""
    if "://" not in address:
        return Path(address)
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise UserError(f"{address}: a file address has three slashes: file:///folder/name")
    return Path(unquote(parts.path))


def download_place(address: str, cache: Path, name: str = "") -> Path:
    """The file in ``cache`` that a download of ``address`` becomes; ``name`` is the address's own if empty."""
    # Addresses may differ in their folders alone, and hold what no file name can.
    folder = cache / "downloads" / hashlib.blake2b(address.encode(), digest_size=6).hexdigest()
    name = name or Path(unquote(urlsplit(address).path)).name
    return folder / (re.sub(r"[^\w.-]", "_", name) or "download")


def fetch(
    address: str,
    cache: Path,
    sha256: str | None = None,
    pause: float = 1.0,
    name: str = "",
    remedy: str = "correct the sum in the config",
) -> Path:
    """The local file of ``address``, downloaded into ``cache`` if it must be; checked if ``sha256`` is given.

    ``pause``: seconds before the second attempt, doubled for each further one. ``name``: of the download, where
    the address has none that says anything. ``remedy``: what the user can do about a wrong sum. Raises UserError
    for an unknown kind of address, a file that is not there, a server that refuses, sends a page or keeps
    failing, a full disk, a wrong sum.
    """
    if not is_remote(address):
        path = local_path(address)
        if not path.is_file():
            raise UserError(f"{address}: no such file")
        check_sha256(path, sha256, address, remedy)
        return path
    if urlsplit(address).scheme not in ("http", "https"):
        raise UserError(f"{address}: unknown kind of address; allowed: https, file, a plain path")
    target = download_place(address, cache, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.exists():
            _download(direct(address), target, pause)
        try:
            check_sha256(target, sha256, address, remedy)
        except UserError as error:
            target.unlink()
            raise UserError(f"{error}; what had arrived was removed") from None
    return target


def sha256_of(path: Path) -> str:
    """64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, expected: str | None, name: str, remedy: str) -> None:
    """Raise UserError unless the file has the sum ``expected`` (None: any); ``name`` is what the user calls it."""
    if expected is None:
        return
    found = sha256_of(path)
    if found != expected.lower():
        raise UserError(
            f"{name}: sha256 is {found}, expected {expected}: a damaged or another version; get it again, or {remedy}"
        )


def _download(address: str, target: Path, pause: float) -> None:
    """Fill ``target`` in as many attempts as it takes, at most ``ATTEMPTS`` in a row without a new byte."""
    part = target.with_name(target.name + ".part")
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _attempt(address, part)
            break
        except (_Interrupted, requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise UserError(
                    f"{address}: its certificate is not trusted here: name your authority's file in"
                    " REQUESTS_CA_BUNDLE, or give another address"
                ) from error
            after = part.stat().st_size if part.exists() else 0
            failures = 1 if after > before else failures + 1
            reason = textwrap.shorten(str(error), 200, placeholder=" …")
            if failures == ATTEMPTS:
                raise UserError(
                    f"{address}: {reason}; {ATTEMPTS} attempts brought nothing more, {size_text(after)} are kept: "
                    "run again to resume, or name another address or a file of your own in the config"
                ) from error
            wait = pause * 2 ** (failures - 1)
            log.warning("%s: interrupted after %s (%s); again in %.0f s", address, size_text(after), reason, wait)
            time.sleep(wait)
        except requests.RequestException as error:
            raise UserError(f"{address}: {textwrap.shorten(str(error), 200, placeholder=' …')}") from error
    part.replace(target)
    _version_file(part).unlink(missing_ok=True)


def _version_file(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _known_version(part: Path) -> str | None:
    """What the server called the version that ``part`` is of; None where continuing it is not safe."""
    if not part.exists():
        return None
    try:
        return json.loads(_version_file(part).read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _attempt(address: str, part: Path) -> None:
    """One request: continue ``part`` where the server allows it, else begin anew; return when it is whole."""
    version = _known_version(part)
    have = part.stat().st_size if version else 0
    # If-Range: a changed file is sent whole. Identity: the bytes of the file, not of a compressed transfer.
    headers = {"Accept-Encoding": "identity"}
    if have and version:
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    with requests.Session() as session, _ask(session, address, headers) as answer:
        if answer.status_code == 416 and have:
            # The part is as long as the file, or longer: begin anew unless it is just whole.
            if answer.headers.get("Content-Range", "").rpartition("/")[2] == str(have):
                return
            part.unlink()
            raise _Interrupted("the part does not fit the file")
        if answer.status_code in _PASSING:
            raise _Interrupted(f"the server answers {answer.status_code} {answer.reason}")
        if not answer.ok:
            raise UserError(f"{address}: the server answers {answer.status_code} {answer.reason}: check the address")
        if answer.status_code == 206:
            begin = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
            if begin is None or int(begin[1]) != have:
                part.unlink()
                raise _Interrupted("the server sent another range than asked for")
            log.info("%s: resumed after %s", address, size_text(have))
        elif have:
            log.warning("%s: the server does not resume, or the file has changed: from the beginning", address)
            have = 0
        _receive(answer, address, part, have)


def _ask(session: requests.Session, address: str, headers: dict[str, str]) -> requests.Response:
    """The answer that holds the file, behind Google Drive's form where the server sends it; UserError for a page."""
    answer = session.get(address, headers=headers, stream=True, timeout=TIMEOUT)
    if not _is_page(answer):
        return answer
    page = _page(answer)
    if page.form is not None:
        url = urlsplit(urljoin(answer.url, page.form))
        # The page asks anew what the address says already; what it leaves out (resourcekey) is kept.
        query = dict(parse_qsl(urlsplit(address).query)) | dict(parse_qsl(url.query)) | page.fields
        answer = session.get(
            urlunsplit(url._replace(query=urlencode(query))), headers=headers, stream=True, timeout=TIMEOUT
        )
        if not _is_page(answer):
            return answer
        page = _page(answer)
    raise UserError(
        f"{address}: the server sends a page instead of the file ({page.title or 'without a title'}): "
        "check the address, try again tomorrow, or get the file by hand and name its path in the config"
    )


def _is_page(answer: requests.Response) -> bool:
    attached = answer.headers.get("Content-Disposition", "").lower().startswith("attachment")
    return answer.ok and answer.headers.get("Content-Type", "").lower().startswith("text/html") and not attached


class _Page(HTMLParser):
    """The title, and the address and hidden fields of Google Drive's form ``download-form``, if it is there."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.form = "", None
        self.fields: dict[str, str] = {}
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "title":
            self._inside = "title"
        elif tag == "form" and values.get("id") == "download-form":
            self._inside, self.form = "form", values.get("action", "")
        elif tag == "input" and self._inside == "form" and values.get("type") == "hidden":
            self.fields[values.get("name", "")] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "title":
            self.title = " ".join(f"{self.title} {data}".split())[:100]


def _page(answer: requests.Response) -> _Page:
    page = _Page()
    page.feed(answer.raw.read(PAGE, decode_content=True).decode("utf-8", errors="replace"))
    answer.close()
    return page


def direct(address: str) -> str:
    """The address behind which Google Drive has the file itself, for a shared link to it; others as they are."""
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query))
    shared = re.match(r"/file/(?:u/\d+/)?d/([\w-]+)", parts.path)
    number = shared[1] if shared else query.get("id")
    if parts.hostname not in ("drive.google.com", "docs.google.com") or number is None:
        return address
    wanted = {"export": "download", "id": number}
    if "resourcekey" in query:
        wanted["resourcekey"] = query["resourcekey"]
    return f"https://drive.google.com/uc?{urlencode(wanted)}"


def _receive(answer: requests.Response, address: str, part: Path, have: int) -> None:
    """Append the answer's body to the first ``have`` bytes of ``part``; _Interrupted when it ends too early."""
    length = answer.headers.get("Content-Length", "")
    total = have + int(length) if length.isdigit() else None
    if total is None:
        log.info("%s: downloading, of unknown size, to %s", address, part.parent)
    else:
        check_space(total - have, part.parent, f"{address}: downloading {size_text(total - have)}")
    etag = answer.headers.get("ETag", "")
    # A weak ETag may not be used for ranges.
    version = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
    if not have:
        # Else a kill in between would leave the new version's name beside the old one's bytes.
        part.unlink(missing_ok=True)
    write_json({"address": address, "version": version}, _version_file(part))
    with room_for(part), part.open("ab") as file, Progress(total and total // 1_000_000, "MB") as progress:
        done = have
        for chunk in answer.raw.stream(CHUNK, decode_content=False):
            file.write(chunk)
            progress.add((done + len(chunk)) // 1_000_000 - done // 1_000_000)
            done += len(chunk)
    if total is not None and done != total:
        raise _Interrupted(f"{done} of {total} bytes arrived")
