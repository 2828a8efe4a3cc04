"""The adjective-noun pairs of one caption: the surface first, the parse where the surface says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workflow_scripts.pairs import parse, surface
from workflow_scripts.pairs.words import Part, Vocabulary, spans

if TYPE_CHECKING:
    from spacy.tokens import Doc


class Occurrence(NamedTuple):
    """One row of pairs.parquet without its caption: canonical words, character offsets, relation."""

    adjective: str
    noun: str
    adjective_start: int
    adjective_end: int
    noun_start: int
    noun_end: int
    relation: str


def occurrences(doc: Doc, vocabulary: Vocabulary) -> list[Occurrence]:
    """All pairs of a parsed caption, in the order of their adjectives and nouns.

    An adjective with a noun by the surface keeps it; what the parse alone says of it is disputed.
    """
    words = vocabulary.words(doc)
    if not any(word.part is Part.ADJECTIVE for word in words):
        return []
    at = spans(words)
    compound = {at[t.i] for t in doc if t.dep_ in ("compound", "nmod") and t.head.i > t.i and at[t.head.i] != at[t.i]}
    found: dict[tuple[int, int], str] = {}
    by_surface: set[int] = set()
    for link in surface.find(words, compound):
        found.setdefault((link.adjective, link.noun), link.relation)
        by_surface.add(link.adjective)
    for link in parse.find(doc, words, at):
        relation = "disputed" if link.adjective in by_surface else link.relation
        found.setdefault((link.adjective, link.noun), relation)
    result = []
    for (a, n), relation in sorted(found.items()):
        adjective, noun = words[a], words[n]
        result.append(
            Occurrence(
                adjective.canonical, noun.canonical, adjective.start, adjective.end, noun.start, noun.end, relation
            )
        )
    return result
