"""Files from an address: https, ``file://`` or a plain path; resumed after a break, checked by sha256.

A download lies in the cache as ``NAME.part`` until it is whole, with ``NAME.part.json`` beside it, which holds
what the server called this version: a part of another version is never continued.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
import urllib3
from filelock import FileLock

from workflow_scripts.common.cli import log
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.io import write_json
from workflow_scripts.common.progress import Progress
from workflow_scripts.dataset.archive import check_space, size_text

ATTEMPTS = 6
TIMEOUT = (20, 60)  # seconds to connect, seconds without a byte
CHUNK = 1 << 18
# Answers after which asking again may help.
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class _Interrupted(Exception):
    """The transfer broke; what has arrived is kept."""


def join(root: str, name: str) -> str:
    """``name`` below ``root``, a folder or an address; ``name`` alone where it is an address or absolute itself."""
    if "://" in name or Path(name).is_absolute():
        return name
    return f"{root.rstrip('/')}/{name}"


def fetch(address: str, cache: Path, sha256: str | None = None, pause: float = 1.0) -> Path:
    """The local file of ``address``, downloaded into ``cache`` if it must be; checked if ``sha256`` is given.

    ``pause``: seconds before the second attempt, doubled for each further one. Raises UserError for an unknown
    kind of address, a file that is not there, a server that refuses or keeps failing, a full disk, a wrong sum.
    """
    parts = urlsplit(address)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise UserError(f"{address}: a file address has three slashes: file:///folder/name")
        return _local(Path(unquote(parts.path)), address, sha256)
    if "://" not in address:
        return _local(Path(address), address, sha256)
    if parts.scheme not in ("http", "https"):
        raise UserError(f"{address}: unknown kind of address; allowed: https, file, a plain path")
    # Addresses may differ in their folders alone, and hold what no file name can.
    folder = cache / "downloads" / hashlib.blake2b(address.encode(), digest_size=6).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (re.sub(r"[^\w.-]", "_", Path(unquote(parts.path)).name) or "download")
    with FileLock(f"{target}.lock"):
        if not target.exists():
            _download(address, target, pause)
        try:
            check_sha256(target, sha256, address)
        except UserError as error:
            target.unlink()
            raise UserError(f"{error}; what had arrived was removed") from None
    return target


def _local(path: Path, address: str, sha256: str | None) -> Path:
    if not path.is_file():
        raise UserError(f"{address}: no such file")
    check_sha256(path, sha256, address)
    return path


def check_sha256(path: Path, expected: str | None, name: str) -> None:
    """Raise UserError unless the file has the sum ``expected`` (None: any); ``name`` is what the user calls it."""
    if expected is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected.lower():
        raise UserError(
            f"{name}: sha256 is {found}, expected {expected}: a damaged or another version; "
            "get it again, or correct the sum in the config"
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
            after = part.stat().st_size if part.exists() else 0
            failures = 1 if after > before else failures + 1
            reason = " ".join(str(error).split())[:200]
            if failures == ATTEMPTS:
                raise UserError(
                    f"{address}: {reason}; {ATTEMPTS} attempts brought nothing more, {size_text(after)} are kept: "
                    "run again to resume"
                ) from error
            wait = pause * 2 ** (failures - 1)
            log.warning("%s: interrupted after %s (%s); again in %.0f s", address, size_text(after), reason, wait)
            time.sleep(wait)
        except requests.RequestException as error:
            raise UserError(f"{address}: {' '.join(str(error).split())[:200]}") from error
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
    with requests.get(address, headers=headers, stream=True, timeout=TIMEOUT) as answer:
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
    write_json({"address": address, "version": version}, _version_file(part))
    with part.open("ab" if have else "wb") as file, Progress(total and total // 1_000_000, "MB") as progress:
        done = have
        for chunk in answer.raw.stream(CHUNK, decode_content=False):
            file.write(chunk)
            progress.add((done + len(chunk)) // 1_000_000 - done // 1_000_000)
            done += len(chunk)
    if total is not None and done != total:
        raise _Interrupted(f"{done} of {total} bytes arrived")
