"""Captions cut into chunks: phrases and clauses by spaCy's parse, each distinct text parsed once and cached.

A caption's first i chunks are its text up to the i-th end, so that a detail is its base with a chunk appended. The
rules of what a chunk is are in ``phrases``.
"""

import json
from collections.abc import Iterable, Sequence

from compclip.core import limits
from compclip.core.cache import Cache, key
from compclip.core.code import code_hash
from compclip.core.progress import Progress
from compclip.specs.phrases import chunk_ends
from compclip.text import parsing
from compclip.text.language import identity, load_language

PIPELINE_BATCH = 32  # texts; more take memory and save hardly any time
BATCH = 1024  # texts looked up in the cache at once


def triple(text: str, ends: Sequence[int], other_text: str, other_ends: Sequence[int], i: int) -> tuple[str, str, str]:
    """Return base, detail and negative for i = 1, …, len(ends) - 1: what the two hinges of SPECS' loss compare.

    The base is the first i chunks, the detail the first i + 1. The negative is the base with its i-th chunk replaced
    by the i-th chunk of the other text, which is another image's.
    """
    start, other_start = (ends[i - 2], other_ends[i - 2]) if i > 1 else (0, 0)
    return text[: ends[i - 1]], text[: ends[i]], text[:start] + other_text[other_start : other_ends[i - 1]]


class Chunker:
    """Cuts texts by spaCy's pipeline ``model`` in this process; ``text.parsing`` runs it in several."""

    def __init__(self, model: str) -> None:
        self.pipeline = load_language(model)
        code = code_hash("compclip.text.language:load_language", "compclip.specs.chunks:Chunker")
        self.context = key(code, identity(model))

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ends of each text's chunks; none for a blank text."""
        # The zone frees what spaCy would keep of each new word.
        with self.pipeline.memory_zone():
            docs = self.pipeline.pipe((text[: limits.CAPTION] for text in texts), batch_size=PIPELINE_BATCH)
            ends = map(chunk_ends, docs)
            # What is not parsed of a very long text belongs to its last chunk.
            return [[*e[:-1], len(t.rstrip())] if t.strip() else [] for e, t in zip(ends, texts, strict=True)]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Return the ends of each text's chunks, encoded for the cache."""
        return [json.dumps(ends, separators=(",", ":")).encode() for ends in self.cut(texts)]


def chunk_all(texts: Sequence[str], model: str | Chunker, cache: Cache, processes: int) -> list[list[int]]:
    """Return the ends of each text's chunks; each distinct text is parsed once and cached, so a killed run resumes."""
    chunker = Chunker(model) if isinstance(model, str) else model
    with Progress(len(texts), "captions") as progress:
        batches = (list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH))
        parsing.fill(chunker, cache, batches, processes, progress.add)
    return [[] if value is None else json.loads(value) for value in parsing.values(chunker, cache, texts)]
