"""Files of the Hugging Face Hub, from the cache of its library or downloaded.

HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and the time-outs of huggingface_hub work as it documents them.
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compclip.core.errors import UserError
from compclip.core.log import log

ANSWER_WAIT = 3  # seconds for an answer before a run
REMEDY = "correct the name, or download it on a machine with internet (docs/cluster.md)"


@contextmanager
def hub(name: str) -> Iterator[None]:
    """Turn any failure to load a model or a file ``name`` from the Hub into a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the libraries raise many kinds
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
        raise UserError(
            f"{name}: not downloaded yet, and not available from the Hub ({reason}); {REMEDY}"
        ) from error


def hub_folder(model: str, patterns: list[str] | None = None, revision: str | None = None) -> Path:
    """Return the folder of a model's files that match ``patterns``; the cached one if the Hub does
    not answer.
    """
    from huggingface_hub import snapshot_download

    with hub(model):
        return Path(snapshot_download(model, revision=revision, allow_patterns=patterns))


def hub_file(model: str, names: Sequence[str], revision: str | None = None) -> Path:
    """Return the first of the files ``names`` that a model on the Hub has; a cached one without
    asking the Hub.
    """
    cached = _cached(model, names, revision)
    if cached:
        return cached
    check_hub_file(model, names)  # immediate, where a download is retried for long
    for name in names:
        log.info("%s: looking for %s on the Hub", model, name)
        file = hub_folder(model, [name], revision) / name
        if file.is_file():
            return file
    wanted = " or ".join(names)
    raise UserError(
        f"{model}: {wanted}: not downloaded yet, and not available from the Hub; {REMEDY}"
    )


def check_hub_file(model: str, names: Sequence[str]) -> None:
    """Raise UserError, without a download, if none of the files ``names`` is cached and the Hub
    lacks the model.
    """
    from huggingface_hub import HfApi

    if not _cached(model, names, None):
        with hub(f"{model}: {names[0]}"):
            HfApi().repo_info(model, timeout=ANSWER_WAIT)


def _cached(model: str, names: Sequence[str], revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    with hub(model):
        paths = [try_to_load_from_cache(model, name, revision=revision) for name in names]
    # Otherwise None, or a mark that the Hub is known to lack the file.
    return next((Path(path) for path in paths if isinstance(path, str)), None)
