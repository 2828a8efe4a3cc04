"""Fetch a file from an address: https, Google Drive, ``file://`` or a plain path; resumed, and checked by sha256.

A download is ``NAME.part`` in the cache until it is complete. ``NAME.part.json`` beside it says which version the
server sent, so that a part of another version is never continued. If Google Drive asks to confirm a large download,
its form is sent; any other page instead of a file is an error.
"""

import hashlib
import html
import json
import re
import textwrap
import time
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit, urlunsplit

import requests
import urllib3
from filelock import FileLock

from workflow_scripts.core.cli import log
from workflow_scripts.core.digests import record, record_file
from workflow_scripts.core.digests import sha256 as sha256_of
from workflow_scripts.core.disk import check_space, size_text
from workflow_scripts.core.documents import no_such
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import room_for, write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.sealed import is_recorded

ATTEMPTS = 6
TIMEOUT = (20, 60)  # seconds to connect, seconds without a byte
CHUNK_BYTES = 1 << 18
PAGE_BYTES = 1 << 20  # read of a page that is sent instead of a file
RETRIED = {408, 425, 429, 500, 502, 503, 504}  # answers after which another request may succeed


class _Interrupted(Exception):
    """The transfer ended early; what has arrived is kept."""


def join(root: str, name: str) -> str:
    """Return ``name`` below ``root``, a folder or an address; ``name`` alone if it is an address or absolute."""
    if "://" in name or Path(name).is_absolute():
        return name
    return f"{root.rstrip('/')}/{name}"


def is_remote(address: str) -> bool:
    """Return whether ``address`` is neither a plain path nor a ``file://`` address."""
    return "://" in address and urlsplit(address).scheme != "file"


def local_path(address: str) -> Path:
    """Return the path of a local address; raises UserError for a ``file://`` address of another machine."""
    if "://" not in address:
        return Path(address)
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise UserError(f"{address}: not a local file address; write three slashes, file:///folder/name")
    return Path(unquote(parts.path))


def download_place(address: str, cache: Path, name: str = "") -> Path:
    """Return the file in ``cache`` for a download of ``address``; ``name`` defaults to the address's own."""
    # Addresses may differ only in their folders, and may contain characters that a file name cannot.
    folder = cache / "downloads" / hashlib.blake2b(address.encode(), digest_size=6).hexdigest()
    name = name or Path(unquote(urlsplit(address).path)).name
    return folder / (re.sub(r"[^\w.-]", "_", name) or "download")


def fetch(
    address: str,
    cache: Path,
    sha256: str | None = None,
    pause: float = 1.0,
    name: str = "",
    remedy: str = "correct the sha256 in the config",
) -> Path:
    """Return the local file of ``address``, downloaded into ``cache`` unless it is there already.

    Args:
        sha256: expected digest; None for any.
        pause: seconds before the second attempt; doubled before each further one.
        name: file name of the download, if the address has none.
        remedy: what the user can do about a wrong digest.
    """
    if not is_remote(address):
        path = local_path(address)
        if not path.is_file():
            raise UserError(no_such(path))
        check_sha256(path, sha256, address, remedy)
        return path
    if urlsplit(address).scheme not in ("http", "https"):
        raise UserError(f"{address}: unknown kind of address; allowed: https, file, a plain path")
    target = download_place(address, cache, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        # Without a known sha256, that of the download itself tells whether the disk has damaged it since.
        if sha256 is None and record_file(target).is_file() and not is_recorded(target, "downloaded again"):
            target.unlink(missing_ok=True)
        if not target.exists():
            _download(direct(address), target, pause)
            if sha256 is None:
                record(target, "the download")
        try:
            check_sha256(target, sha256, address, remedy)
        except UserError as error:
            target.unlink()
            record_file(target).unlink(missing_ok=True)
            raise UserError(f"{error}; the download was removed") from None
    return target


def check_sha256(path: Path, expected: str | None, name: str, remedy: str) -> None:
    """Raise UserError unless the file has the digest ``expected`` (None: any); errors call the file ``name``."""
    if expected is not None and (actual := sha256_of(path)) != expected.lower():
        raise UserError(
            f"{name}: sha256 is {actual}, expected {expected}: damaged or another version; get it again, or {remedy}"
        )


def direct(address: str) -> str:
    """Return the address of the file itself for a link shared by Google Drive; other addresses unchanged."""
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


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _download(address: str, target: Path, pause: float) -> None:
    """Fill ``target``, and give up after ``ATTEMPTS`` in a row without a new byte."""
    part = target.with_name(target.name + ".part")
    failures = 0
    while True:
        before = _size(part)
        try:
            _attempt(address, part)
            break
        except (_Interrupted, requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise UserError(
                    f"{address}: its certificate is not trusted on this machine; set REQUESTS_CA_BUNDLE to the file of"
                    " your certificate authority, or use another address"
                ) from error
            arrived = _size(part)
            failures = 1 if arrived > before else failures + 1
            reason = textwrap.shorten(str(error), 200, placeholder=" …")
            if failures == ATTEMPTS:
                raise UserError(
                    f"{address}: {reason}; no progress in {ATTEMPTS} attempts, {size_text(arrived)} are kept; run again"
                    " to resume, or name another address or a local file in the config"
                ) from error
            wait = pause * 2 ** (failures - 1)
            log.warning("%s: interrupted after %s (%s); retry in %.0f s", address, size_text(arrived), reason, wait)
            time.sleep(wait)
        except requests.RequestException as error:
            raise UserError(f"{address}: {textwrap.shorten(str(error), 200, placeholder=' …')}") from error
    part.replace(target)
    _version_file(part).unlink(missing_ok=True)


def _version_file(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _known_version(part: Path) -> str | None:
    """Return the server's name of the version that ``part`` is of; None if it cannot be continued safely."""
    if not part.exists():
        return None
    try:
        return json.loads(_version_file(part).read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _attempt(address: str, part: Path) -> None:
    """Make one request: continue ``part`` if the server allows it, else start again; return when it is complete."""
    version = _known_version(part)
    have = _size(part) if version else 0
    # Identity: the bytes of the file, not of a compressed transfer.
    headers = {"Accept-Encoding": "identity"}
    if have and version:
        # With If-Range, a server sends a changed file from the start.
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    with requests.Session() as session, _ask(session, address, headers) as answer:
        if answer.status_code == 416 and have:
            if answer.headers.get("Content-Range", "").rpartition("/")[2] == str(have):
                return  # the part is the whole file
            part.unlink()
            raise _Interrupted("the part is longer than the file")
        if answer.status_code in RETRIED:
            raise _Interrupted(f"the server answers {answer.status_code} {answer.reason}")
        if not answer.ok:
            raise UserError(f"{address}: the server answers {answer.status_code} {answer.reason}; check the address")
        if answer.status_code == 206:
            begin = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
            if begin is None or int(begin[1]) != have:
                part.unlink()
                raise _Interrupted("the server sent another range than requested")
            log.info("%s: resumed after %s", address, size_text(have))
        elif have:
            log.warning("%s: the server does not resume, or the file has changed; starting again", address)
            have = 0
        _receive(answer, address, part, have)


def _ask(session: requests.Session, address: str, headers: dict[str, str]) -> requests.Response:
    """Return the answer with the file, after Google Drive's form if there is one; raises UserError for a page."""
    url = address
    for _ in range(2):
        answer = session.get(url, headers=headers, stream=True, timeout=TIMEOUT)
        attached = answer.headers.get("Content-Disposition", "").lower().startswith("attachment")
        if not answer.ok or attached or not answer.headers.get("Content-Type", "").lower().startswith("text/html"):
            return answer
        page = answer.raw.read(PAGE_BYTES, decode_content=True).decode("utf-8", errors="replace")
        answer.close()
        form = re.search(r'<form[^>]* id="download-form".*?</form>', page, re.DOTALL | re.IGNORECASE)
        if form is None:
            break
        action = urlsplit(urljoin(answer.url, _attributes(form[0]).get("action", "")))
        fields = [_attributes(tag) for tag in re.findall(r"<input[^>]*>", form[0], re.IGNORECASE)]
        hidden = {field["name"]: field.get("value", "") for field in fields if field.get("type") == "hidden"}
        # The form repeats most of the address's query; what it omits (resourcekey) is kept.
        query = dict(parse_qsl(urlsplit(address).query)) | dict(parse_qsl(action.query)) | hidden
        url = urlunsplit(action._replace(query=urlencode(query)))
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL | re.IGNORECASE)
    shown = " ".join(html.unescape(title[1]).split())[:100] if title else "no title"
    raise UserError(
        f"{address}: the server sends a page instead of the file ({shown}); check the address, try again tomorrow, or"
        " download the file in a browser and name its path in the config"
    )


def _attributes(tag: str) -> dict[str, str]:
    return {k: html.unescape(v) for k, v in re.findall(r'([\w-]+)="([^"]*)"', tag[: tag.index(">")])}


def _receive(answer: requests.Response, address: str, part: Path, have: int) -> None:
    """Append the answer's body to the first ``have`` bytes of ``part``; raises _Interrupted if it ends too early."""
    length = answer.headers.get("Content-Length", "")
    total = have + int(length) if length.isdigit() else None
    if total is None:
        log.info("%s: downloading, of unknown size, to %s", address, part.parent)
    else:
        check_space(total - have, part.parent, f"{address}: downloading {size_text(total - have)}")
    etag = answer.headers.get("ETag", "")
    # Ranges need a strong ETag.
    version = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
    if not have:
        # Before the new version is named, or a kill in between would attach it to the old bytes.
        part.unlink(missing_ok=True)
    write_json({"address": address, "version": version}, _version_file(part))
    with room_for(part), part.open("ab") as file, Progress(total and total // 1_000_000, "MB") as progress:
        done = have
        for chunk in answer.raw.stream(CHUNK_BYTES, decode_content=False):
            file.write(chunk)
            progress.add((done + len(chunk)) // 1_000_000 - done // 1_000_000)
            done += len(chunk)
    if total is not None and done != total:
        raise _Interrupted(f"{done} of {total} bytes arrived")
