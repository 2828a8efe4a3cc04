"""The Hugging Face Hub: what its libraries read comes from their cache or, if the Hub answers, from there.

Left to themselves, these libraries wait and try again for minutes where there is no internet.
"""

import hashlib
import re
import textwrap
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError

PATIENCE = 1.5  # seconds that a server may take to answer; with the start of Python an error takes less than three
REMEDY = "run `make prefetch` with this config on a machine with internet"


@cache
def silence(address: str) -> str:
    """Return why the server of ``address`` does not answer, or nothing if it does; asked once in a process."""
    reason = [f"no answer within {PATIENCE:g} s"]

    def ask() -> None:
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=PATIENCE).close()
            reason[0] = ""
        except urllib.error.HTTPError as error:
            # A proxy answers in the name of a server that it cannot reach.
            reason[0] = f"error {error.code}" if error.code in (502, 503, 504) else ""
        except OSError as error:
            reason[0] = " ".join(str(getattr(error, "reason", error)).split())

    # The time to look up a name has no limit of its own, hence the thread.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return reason[0]


def check_answers(address: str, what: str) -> None:
    """Raise UserError, at most ``PATIENCE`` later, unless the server of ``address`` answers."""
    if fault := silence(address):
        raise _unreachable(what, "/".join(address.split("/", 3)[:3]), fault)


def _unreachable(what: str, place: str, fault: str, remedy: str = REMEDY) -> UserError:
    return UserError(f"{what}: not downloaded yet, and {place} cannot be reached ({fault}); {remedy}")


def _silence_of_hub() -> str:
    from huggingface_hub import constants

    return "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else silence(constants.ENDPOINT)


@contextmanager
def hub(what: str, remedy: str = REMEDY) -> Iterator[None]:
    """Let libraries take ``what`` from their cache alone if the Hub does not answer; any failure is a UserError."""
    from huggingface_hub import constants

    before, fault = constants.HF_HUB_OFFLINE, _silence_of_hub()
    constants.HF_HUB_OFFLINE = bool(fault)
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # these libraries raise many kinds
        if fault:
            raise _unreachable(what, constants.ENDPOINT, fault, remedy) from error
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
        raise UserError(f"{what}: could not be downloaded from the Hub ({reason}); correct the name") from error
    finally:
        constants.HF_HUB_OFFLINE = before


def hub_file(model: str, names: Sequence[str], revision: str | None = None, remedy: str = REMEDY) -> Path:
    """Return the first of the files ``names`` that a model on the Hub has; a cached one without asking the Hub."""
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    if cached := _cached(model, names, revision):
        check_blob(cached)
        return cached
    with hub(f"{model}: {names[0]}", remedy):
        for name in names:
            try:
                if not constants.HF_HUB_OFFLINE:
                    log.info("%s: downloading %s from the Hub", model, name)
                return Path(hf_hub_download(model, name, revision=revision))
            except RemoteEntryNotFoundError:
                continue
    raise UserError(f"{model}: has no {' or '.join(names)} on the Hub; choose a model in open_clip's format")


def check_blob(file: Path) -> None:
    """Raise UserError if a cached file is damaged: the Hub's large files are links to one named by its SHA-256."""
    blob = file.resolve()
    if re.fullmatch("[0-9a-f]{64}", blob.name) and _sha256(blob, blob.stat().st_mtime_ns) != blob.name:
        raise UserError(f"{file}: damaged, its SHA-256 is not {blob.name}; delete {blob} and {REMEDY}")


@cache
def _sha256(file: Path, mtime: int) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def check_hub_file(model: str, names: Sequence[str]) -> None:
    """Raise UserError, without a download, if none of the files ``names`` is cached and the Hub does not answer."""
    from huggingface_hub import constants

    if not _cached(model, names, None) and (fault := _silence_of_hub()):
        raise _unreachable(f"{model}: {names[0]}", constants.ENDPOINT, fault)


def _cached(model: str, names: Sequence[str], revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        places = [try_to_load_from_cache(model, name, revision=revision) for name in names]
    except HFValidationError as error:
        raise UserError(f"{model!r}: not a name of a model on the Hub; expected owner/name") from error
    return next((Path(place) for place in places if isinstance(place, str)), None)
