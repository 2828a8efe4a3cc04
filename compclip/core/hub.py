"""The Hugging Face Hub: what a run takes from it is in its library's cache, or is downloaded.

HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and the library's time-outs act as huggingface_hub documents them.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from compclip.core.digests import sha256
from compclip.core.errors import UserError, require
from compclip.core.log import log

ANSWER_WAIT = 3  # seconds for an answer before a run
REMEDY = "correct the name, or download it on a machine with internet (docs/cluster.md)"


@contextmanager
def hub(what: str, remedy: str = REMEDY) -> Iterator[None]:
    """Turn any failure to take ``what`` from the Hub into a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the libraries raise many kinds
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
        raise UserError(f"{what}: not downloaded yet, and the Hub could not give it ({reason}); {remedy}") from error


def hub_folder(
    model: str, patterns: list[str] | None = None, revision: str | None = None, remedy: str = REMEDY
) -> Path:
    """Return the folder of a model's files that match ``patterns``; the cached one if the Hub does not answer."""
    from huggingface_hub import snapshot_download

    with hub(model, remedy):
        folder = Path(snapshot_download(model, revision=revision, allow_patterns=patterns))
    for file in folder.rglob("*"):
        check_blob(file)
    return folder


def hub_file(model: str, names: Sequence[str], revision: str | None = None, remedy: str = REMEDY) -> Path:
    """Return the first of the files ``names`` that a model on the Hub has; a cached one without asking the Hub."""
    if cached := _cached(model, names, revision):
        check_blob(cached)
        return cached
    check_hub_file(model, names, remedy)  # at once, where a download is tried for long
    for name in names:
        log.info("%s: looking for %s on the Hub", model, name)
        if (file := hub_folder(model, [name], revision, remedy) / name).is_file():
            return file
    wanted = " or ".join(names)
    raise UserError(f"{model}: {wanted}: not downloaded yet, and the Hub has none or does not answer; {remedy}")


def check_blob(file: Path) -> None:
    """Raise UserError if a cached large file is damaged: ``hf_hub_download`` names it by its SHA-256, as documented."""
    blob = file.resolve()
    is_whole = not re.fullmatch("[0-9a-f]{64}", blob.name) or _sha256(blob, blob.stat().st_mtime_ns) == blob.name
    require(is_whole, file, f"damaged, its SHA-256 is not {blob.name}", f"delete {blob} and run again")


@cache
def _sha256(file: Path, mtime: int) -> str:
    return sha256(file)


def check_hub_file(model: str, names: Sequence[str], remedy: str = REMEDY) -> None:
    """Raise UserError, without a download, if none of the files ``names`` is cached and the Hub lacks the model."""
    from huggingface_hub import HfApi

    if not _cached(model, names, None):
        with hub(f"{model}: {names[0]}", remedy):
            HfApi().repo_info(model, timeout=ANSWER_WAIT)


def _cached(model: str, names: Sequence[str], revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    with hub(model):
        places = [try_to_load_from_cache(model, name, revision=revision) for name in names]
    return next((Path(place) for place in places if isinstance(place, str)), None)
