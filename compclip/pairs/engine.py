"""Find the pairs and the tree of a caption; ``text.parsing`` runs this once for each distinct text.

The result depends only on the text, the pipeline, the lexicons and this code, all of which the
cache's key covers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import from_json

from compclip.core.identity.cache import key
from compclip.core.identity.code import code_hash
from compclip.core.reading.normal import Normalized, normalize
from compclip.pairs.parse import find_by_parse
from compclip.pairs.scope import denied
from compclip.pairs.surface import Link, find_by_surface
from compclip.pairs.tree import Tree, tree
from compclip.pairs.words import Vocabulary, Word, spans
from compclip.text import parsing
from compclip.text.grammar import WORDS
from compclip.text.language import identity, load_language
from compclip.text.lexicon import COMMON_COMPOUNDS, Lexicon, load_lexicon

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

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
    tokens: Sequence[Token], words: list[Word], word_of_token: dict[int, int], text: Normalized
) -> list[Occurrence]:
    """Return all pairs of a parsed caption, in the order of their adjectives and nouns;
    ``word_of_token`` is ``words.spans``.

    ``text`` is the text of ``tokens``, which has the offsets in the caption as given.
    """
    relations = _relations(tokens, words, word_of_token)
    reached, absent = denied(tokens, words)
    result = []
    for (a, n), grammatical in sorted(relations.items()):
        adjective = words[a]
        noun = words[n]
        relation = grammatical
        # What a caption denies or supposes: whether the image shows it is open.
        # A noun in a scope is not enough: in `a red bill, not a bill`, it is red.
        if a in reached or n in absent:
            relation = "disputed"
        # Offsets in the caption as given, which people and swaps see.
        adjective_span = text.given(adjective.start, adjective.end)
        noun_span = text.given(noun.start, noun.end)
        names = (adjective.canonical, noun.canonical)
        result.append(Occurrence(*names, *adjective_span, *noun_span, relation))
    return result


def _relations(
    tokens: Sequence[Token], words: list[Word], word_of_token: dict[int, int]
) -> dict[tuple[int, int], str]:
    """Return the relation of each adjective and noun that surface or parse link.

    If the surface gives an adjective a noun, a different noun that only the parse gives is
    disputed. So is a noun to the left of an attributive adjective: in `a white belly grey back` the
    parser may choose it, unlike a reader. So is a noun behind a separator, as in the list `red;
    bill`.
    """
    links, without_noun = find_by_surface(words)
    # Of several links of a pair, the first counts.
    relations = {(link.adjective, link.noun): link.relation for link in reversed(links)}
    settled = without_noun | {adjective for adjective, _ in relations}
    for link in find_by_parse(tokens, words, word_of_token):
        relation = link.relation
        if link.adjective in settled or _is_implausible(link, words):
            relation = "disputed"
        # The surface's relation counts if both find the pair.
        relations.setdefault((link.adjective, link.noun), relation)
    return relations


def _is_implausible(link: Link, words: list[Word]) -> bool:
    """Return whether the noun of an attributive adjective is to its left or behind a separator."""
    if link.relation != "attributive":
        return False
    # `a white belly grey back`: the belly is not gray.
    if link.noun < link.adjective:
        return True
    inside = words[link.adjective + 1 : link.noun]
    return any(word.lower in WORDS.separators for word in inside)


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
        lexicons = [lexicon for lexicon in (*adjectives, nouns, compounds) if lexicon]
        forms = [[lexicon.name, sorted(lexicon.forms.items())] for lexicon in lexicons]
        code = code_hash(
            __name__, within=("compclip.pairs", "compclip.text", "compclip.core.reading.normal")
        )
        # Everything that the parse of a text depends on.
        self.context = key(code, identity(model), json.dumps([forms, nouns is None]))

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        """Return the key of each text in the cache."""
        return [key(self.context, text) for text in texts]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Return the cached value of each text: its occurrences and, in a second line, its tree."""
        as_read = [normalize(text) for text in texts]
        docs = self.nlp.pipe([text.text for text in as_read], batch_size=parsing.CHUNK)
        return [self._encode(doc, text) for doc, text in zip(docs, as_read, strict=True)]

    def _encode(self, doc: Doc, text: Normalized) -> bytes:
        # A Doc makes a new object at each access to a token.
        tokens = list(doc)
        words = self.vocabulary.words(tokens)
        word_of_token = spans(words)
        pairs = JSON_ENCODE(occurrences(tokens, words, word_of_token, text))
        nodes = JSON_ENCODE(tree(tokens, words, self.vocabulary, word_of_token))
        return f"{pairs}\n{nodes}".encode()


def decode_occurrences(value: bytes) -> list[Occurrence]:
    """Return the occurrences that ``Extractor.parse`` encoded."""
    return [Occurrence(*row) for row in from_json(value.partition(b"\n")[0])]


def decode_tree(value: bytes) -> Tree:
    """Return the tree that ``Extractor.parse`` encoded."""
    return Tree(*from_json(value.partition(b"\n")[2]))
