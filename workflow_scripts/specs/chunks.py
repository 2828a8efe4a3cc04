"""Captions cut into chunks: phrases and clauses by spaCy's parse, each distinct text parsed once and cached.

A caption's first i chunks are its text up to the i-th end, so that a detail is its base with a chunk appended. The
rules of what a chunk is are in ``phrases``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from workflow_scripts.core import limits
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.code import code_hash
from workflow_scripts.specs.phrases import chunk_ends, with_rest
from workflow_scripts.text import parsing
from workflow_scripts.text.language import identity, load_language

if TYPE_CHECKING:
    from spacy.language import Language

PIPELINE_BATCH = 32  # texts; more take memory and save hardly any time
READ_AHEAD = 8  # batches of texts in memory for each process


def triple(text: str, ends: Sequence[int], other_text: str, other_ends: Sequence[int], i: int) -> tuple[str, str, str]:
    """Return base, detail and negative for i = 1, 2, …: what the two hinges of SPECS' loss compare.

    The base is the first i chunks, the detail the first i + 1. The negative is the base with its i-th chunk replaced
    by the i-th chunk of the other text, which is another image's.
    """
    if not 1 <= i < len(ends):
        raise ValueError(f"no base of {i} and detail of {i + 1} chunks in a text of {len(ends)}")
    if len(other_ends) < i:
        raise ValueError(f"no chunk {i} in another text of {len(other_ends)}")
    start, other_start = (ends[i - 2], other_ends[i - 2]) if i > 1 else (0, 0)
    return text[: ends[i - 1]], text[: ends[i]], text[:start] + other_text[other_start : other_ends[i - 1]]


def cut(pipeline: Language, texts: Sequence[str]) -> list[list[int]]:
    """Return the ends of each text's chunks; none for a blank text."""
    # The zone frees what spaCy would keep of each new word.
    with pipeline.memory_zone():
        docs = pipeline.pipe((text[: limits.CAPTION] for text in texts), batch_size=PIPELINE_BATCH)
        return [with_rest(chunk_ends(doc), doc.text, text) for doc, text in zip(docs, texts, strict=True)]


def context(model: str) -> bytes:
    code = code_hash("workflow_scripts.text.language:load_language", "workflow_scripts.specs.chunks:cut")
    return key(code, identity(model))


class Chunker:
    """Cuts texts by spaCy's pipeline ``model`` in this process; ``text.parsing`` runs it in several."""

    def __init__(self, model: str) -> None:
        self.pipeline = load_language(model)
        self.context = context(model)

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        return cut(self.pipeline, texts)

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Return the ends of each text's chunks, encoded for the cache."""
        return [json.dumps(ends, separators=(",", ":")).encode() for ends in self.cut(texts)]


def chunk_all(texts: Iterable[str], model: str | Chunker, cache: Cache, processes: int) -> Iterator[list[int]]:
    """Yield the ends of each text's chunks, in order; ``texts`` may be endless, a few thousand are in memory at once.

    Each distinct text is parsed once by one of ``processes`` and cached, so that a killed run resumes.
    """
    chunker = Chunker(model) if isinstance(model, str) else model
    remaining = iter(texts)
    while batch := list(islice(remaining, READ_AHEAD * parsing.CHUNK * processes)):
        parsing.fill(chunker, cache, [batch], processes)
        for value in parsing.values(chunker, cache, batch):
            yield [] if value is None else json.loads(value)
