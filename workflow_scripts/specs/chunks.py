"""Captions cut into chunks that add up: phrases and clauses, by spaCy's parse, each text parsed once and kept.

A caption's first i chunks are its text up to the i-th end, so that a detail is its base and something behind it. The
pipeline is that of stage ``pairs``; the rules of what is a chunk are in ``phrases``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.specs.phrases import PARSED, chunk_ends, with_rest
from workflow_scripts.text import parsing
from workflow_scripts.text.language import identity, load_language

__all__ = ["Chunker", "context", "chunk_all", "chunk_ends", "increments", "triple"]

# Texts that go through the pipeline together: more take memory and hardly less time.
AT_ONCE = 32
# Batches of texts, for each process, that are held until all of them are cut.
HELD = 8


def increments(text: str, ends: Sequence[int]) -> list[str]:
    """The text up to each end: its first chunk, its first two, … the last is the text without white space behind it."""
    return [text[:end] for end in ends]


def triple(text: str, ends: Sequence[int], other_text: str, other_ends: Sequence[int], i: int) -> tuple[str, str, str]:
    """Base, detail and negative for i = 1, 2, …: what the two hinges of SPECS' loss compare.

    The base is the first i chunks, the detail the first i + 1; the negative is the first i - 1 and the i-th chunk of
    the other text, which is another image's. Base and negative differ in that chunk alone.

    Raises ValueError where the text has not i + 1 chunks or the other not i.
    """
    if not 1 <= i < len(ends):
        raise ValueError(f"no base of {i} and detail of {i + 1} chunks in a text of {len(ends)}")
    if len(other_ends) < i:
        raise ValueError(f"no chunk {i} in another text of {len(other_ends)}")
    kept = ends[i - 2] if i > 1 else 0
    wrong = other_text[other_ends[i - 2] if i > 1 else 0 : other_ends[i - 1]]
    return text[: ends[i - 1]], text[: ends[i]], text[:kept] + wrong


def context(model: str) -> bytes:
    """What the chunks of a text depend on beside it: the pipeline and the rules."""
    # Not parsing: how texts are handed to processes changes nothing.
    return key(code_hash("workflow_scripts.text.language", "workflow_scripts.specs.phrases"), identity(model))


class Chunker:
    """Cuts texts in this process; what ``common.parsing`` runs in several.

    model: the pipeline's name. Raises UserError where it cannot be loaded.
    """

    def __init__(self, model: str) -> None:
        self.nlp = load_language(model)
        self.context = context(model)

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """The ends of each text's chunks; none of a blank one."""
        # What spaCy keeps of each new word is given back.
        with self.nlp.memory_zone():
            docs = self.nlp.pipe((text[:PARSED] for text in texts), batch_size=AT_ONCE)
            return [with_rest(chunk_ends(doc), doc.text, text) for doc, text in zip(docs, texts, strict=True)]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """The same, encoded as it stands in the cache."""
        return [json.dumps(ends, separators=(",", ":")).encode() for ends in self.cut(texts)]


def chunk_all(texts: Iterable[str], model: str | Chunker, cache: Cache, processes: int) -> Iterator[list[int]]:
    """The ends of each text's chunks (``chunk_ends``), in the order of the texts.

    Each distinct text is parsed once by one of ``processes``, and kept in ``cache`` by its content, the pipeline and
    the rules. ``texts`` may be endless: a few thousand are held at once. A run that was killed goes on from the cache.
    """
    chunker = Chunker(model) if isinstance(model, str) else model
    source = iter(texts)
    while held := list(islice(source, HELD * parsing.CHUNK * processes)):
        parsing.fill(chunker, cache, [held], processes)
        keys = chunker.keys(held)
        found = cache.get(list(dict.fromkeys(keys)))
        for k, text in zip(keys, held, strict=True):
            if k not in found and text.strip():
                raise UserError(f"{cache.path}: lost while it was read: run again")
            yield json.loads(found[k]) if k in found else []
