"""Find the pairs and the tree of a caption; ``text.parsing`` runs this once for each distinct text.

The result depends only on the text, the pipeline, the lexicons and this code, all of which the
cache's key covers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from compclip.core.cache import key
from compclip.core.code import code_hash
from compclip.core.normal import Normalized, normalize
from compclip.pairs.parse import find_by_parse
from compclip.pairs.scope import denied
from compclip.pairs.surface import find_by_surface
from compclip.pairs.tree import Tree, tree
from compclip.pairs.words import Vocabulary, Word, spans
from compclip.text import parsing
from compclip.text.grammar import WORDS
from compclip.text.language import identity, load_language
from compclip.text.lexicon import COMMON_COMPOUNDS, Lexicon, load_lexicon

if TYPE_CHECKING:
    from spacy.tokens import Doc

JSON_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


class Occurrence(NamedTuple):
    """A row of pairs.parquet without its caption: canonical words, character offsets, relation."""

    adjective: str
    noun: str
    adjective_start: int
    adjective_end: int
    noun_start: int
    noun_end: int
    relation: str


def occurrences(
    doc: Doc, words: list[Word], at: dict[int, int], text: Normalized
) -> list[Occurrence]:
    """Return all pairs of a parsed caption, in the order of their adjectives and nouns; ``at`` is
    ``words.spans``.

    ``text`` is the text of ``doc``, which has the offsets in the caption as given.
    If the surface gives an adjective a noun, a different noun that only the parse gives is
    disputed. So is a noun to the left of an attributive adjective: in `a white belly grey back` the
    parser may choose it, unlike a reader. So is a noun behind a separator, as in the list `red;
    bill`, and a pair that the caption denies or supposes (``scope``): whether the image shows it is
    open.
    """
    links, nowhere = find_by_surface(words)
    relations = {(link.adjective, link.noun): link.relation for link in reversed(links)}
    settled = nowhere | {adjective for adjective, _ in relations}
    for link in find_by_parse(doc, words, at):
        is_attributive = link.relation == "attributive"
        leftward = is_attributive and link.noun < link.adjective
        between = words[link.adjective + 1 : link.noun] if is_attributive else []
        is_separated = any(word.lower in WORDS.separators for word in between)
        relation = (
            "disputed" if leftward or is_separated or link.adjective in settled else link.relation
        )
        relations.setdefault((link.adjective, link.noun), relation)
    reached, absent = denied(doc, words)
    result = []
    for (a, n), relation in sorted(relations.items()):
        adjective, noun = words[a], words[n]
        places = (*text.given(adjective.start, adjective.end), *text.given(noun.start, noun.end))
        # A noun in a scope is not enough: in `a red bill, not a bill`, it is red.
        relation = "disputed" if a in reached or n in absent else relation
        result.append(Occurrence(adjective.canonical, noun.canonical, *places, relation))
    return result


class Extractor:
    """Parses texts for ``text.parsing`` by the pipeline ``model``; without a noun lexicon, any noun
    counts.
    """

    def __init__(
        self,
        model: str,
        adjectives: Sequence[Lexicon],
        nouns: Lexicon | None,
        compounds: Lexicon | None = None,
    ) -> None:
        compounds = compounds or load_lexicon(COMMON_COMPOUNDS)
        self.nlp = load_language(model, "pairs.model")
        self.vocabulary = Vocabulary(self.nlp, adjectives, nouns, compounds)
        lexicons = [
            [lexicon.name, sorted(lexicon.forms.items())]
            for lexicon in (*adjectives, nouns, compounds)
            if lexicon
        ]
        self.context = key(
            code_hash(__name__, within=("compclip.pairs", "compclip.text", "compclip.core.normal")),
            identity(model),
            json.dumps([lexicons, nouns is None]),
        )

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Return the cached value of each text: its occurrences and, in a second line, its tree."""
        as_read = [normalize(text) for text in texts]
        docs = self.nlp.pipe([text.text for text in as_read], batch_size=parsing.CHUNK)
        return [self._encode(doc, text) for doc, text in zip(docs, as_read, strict=True)]

    def _encode(self, doc: Doc, text: Normalized) -> bytes:
        words = self.vocabulary.words(doc)
        at = spans(words)
        lines = occurrences(doc, words, at, text), tree(doc, words, self.vocabulary, at)
        return b"\n".join(JSON_ENCODE(line).encode() for line in lines)


def decode_occurrences(value: bytes) -> list[Occurrence]:
    """Return the occurrences that ``Extractor.parse`` encoded."""
    return [Occurrence(*row) for row in json.loads(value.partition(b"\n")[0])]


def decode_tree(value: bytes) -> Tree:
    """Return the tree that ``Extractor.parse`` encoded."""
    return Tree(*json.loads(value.partition(b"\n")[2]))
