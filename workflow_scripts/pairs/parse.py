"""Pairs by the dependency parse: attributive and predicative, through conjunctions and relative clauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_scripts.pairs.surface import Link
from workflow_scripts.pairs.words import Part, Word

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

SUBJECTS = frozenset(("nsubj", "nsubjpass"))
PREDICATES = frozenset(("acomp", "attr", "oprd", "ROOT", "ccomp"))
MODIFIERS = frozenset(("amod", "compound", "nmod"))


def find(doc: Doc, words: list[Word], at: dict[int, int]) -> list[Link]:
    """The pairs of relation attributive and predicative; the nouns of one adjective stand in their order.

    Args:
        doc: the parsed caption
        words: the same as a row of words
        at: from a token's index to its word's
    """
    links: list[Link] = []
    for n, word in enumerate(words):
        if word.part is Part.ADJECTIVE:
            for noun, relation in _nouns(doc[word.last], words, at, 0):
                links.append(Link(n, noun, relation))
    return links


def _nouns(token: Token, words: list[Word], at: dict[int, int], depth: int) -> list[tuple[int, str]]:
    """The nouns that an adjective's token is about, with the relation."""
    if depth > 6:
        return []
    dep, head = token.dep_, token.head
    if dep == "conj" and head is not token:
        part = words[at[head.i]].part
        if part is Part.ADJECTIVE:
            return _nouns(head, words, at, depth + 1)
    if any(child.dep_ in ("auxpass", "cop") for child in token.children):
        return _subjects(token, words, at)
    if dep in MODIFIERS or dep == "npadvmod":
        part = words[at[head.i]].part
        if part is Part.NOUN and at[head.i] != at[token.i]:
            return [(at[head.i], "attributive")]
        if part is Part.ADJECTIVE:
            return _nouns(head, words, at, depth + 1)
    if dep in PREDICATES and words[at[head.i]].part is Part.BE:
        return _subjects(head, words, at)
    return []


def _subjects(verb: Token, words: list[Word], at: dict[int, int]) -> list[tuple[int, str]]:
    """The nouns that a copula's predicate is about: its subject and what is coordinated with it."""
    subjects = [child for child in verb.children if child.dep_ in SUBJECTS]
    if not subjects and verb.dep_ == "conj" and verb.head is not verb:
        return _subjects(verb.head, words, at)
    if not subjects or words[at[subjects[0].i]].part is Part.THAT:
        return [(at[verb.head.i], "predicative")] if _is_noun(verb.head, words, at) and verb.dep_ == "relcl" else []
    result = []
    queue = subjects[:1]
    while queue:
        token = queue.pop(0)
        if _is_noun(token, words, at):
            result.append((at[token.i], "predicative"))
        queue.extend(child for child in token.children if child.dep_ == "conj")
    # The nearest noun is what the predicate is about first; the others share it.
    return [(noun, "predicative" if n == 0 else "shared") for n, (noun, _) in enumerate(reversed(result))]


def _is_noun(token: Token, words: list[Word], at: dict[int, int]) -> bool:
    return words[at[token.i]].part is Part.NOUN
