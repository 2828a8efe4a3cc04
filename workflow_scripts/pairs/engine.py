"""Occurrences and trees of captions; ``common.parsing`` finds those of many, each distinct text once.

What a text gives depends on the text, the pipeline, the lexicons and this code alone, all of which are in
the cache's key: not on the batch, the process or the order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workflow_scripts.core.cache import key
from workflow_scripts.core.code import code_hash
from workflow_scripts.pairs.occurrences import Occurrence, occurrences
from workflow_scripts.pairs.tree import Tree, tree
from workflow_scripts.pairs.words import Vocabulary, spans
from workflow_scripts.text import parsing
from workflow_scripts.text.language import identity, load_language
from workflow_scripts.text.lexicon import Lexicon

if TYPE_CHECKING:
    from spacy.tokens import Doc

ENCODE = json.JSONEncoder(separators=(",", ":")).encode


class Extractor:
    """``extractor.parse(texts)`` in this process; ``keys`` names each text's place in the cache.

    Args:
        model: the pipeline's name in the config
        adjectives: the adjective lexicons
        nouns: the noun lexicon, or None where any noun goes
    """

    def __init__(self, model: str, adjectives: Sequence[Lexicon], nouns: Lexicon | None) -> None:
        self.nlp = load_language(model, "pairs.model")
        self.vocabulary = Vocabulary(self.nlp, adjectives, nouns)
        lexicons = [[lexicon.name, sorted(lexicon.forms.items())] for lexicon in (*adjectives, nouns) if lexicon]
        self.context = key(
            code_hash(*(f"workflow_scripts.{name}" for name in ("text.language", "pairs.occurrences", "pairs.tree"))),
            identity(model),
            json.dumps([lexicons, nouns is None]),
        )

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Each text's occurrences and, in a second line, its tree, encoded as they stand in the cache."""
        return [self._encode(doc) for doc in self.nlp.pipe(texts, batch_size=parsing.CHUNK)]

    def _encode(self, doc: Doc) -> bytes:
        words = self.vocabulary.words(doc)
        at = spans(words)
        found = occurrences(doc, words, at), tree(doc, words, self.vocabulary, at)
        return b"\n".join(ENCODE(part).encode() for part in found)


def decode(value: bytes) -> list[Occurrence]:
    """The occurrences that ``Extractor.parse`` encoded."""
    return [Occurrence(*row) for row in json.loads(value.partition(b"\n")[0])]


def decode_tree(value: bytes) -> Tree:
    """The tree that ``Extractor.parse`` encoded."""
    return Tree(*json.loads(value.partition(b"\n")[2]))
