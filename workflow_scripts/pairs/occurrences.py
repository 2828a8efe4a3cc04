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
    found: dict[tuple[int, int], str] = {}
    links, nowhere = surface.find(words)
    for link in links:
        found.setdefault((link.adjective, link.noun), link.relation)
    settled = nowhere | {adjective for adjective, _ in found}
    for link in parse.find(doc, words, at):
        found.setdefault((link.adjective, link.noun), "disputed" if link.adjective in settled else link.relation)
    result = []
    for (a, n), relation in sorted(found.items()):
        adjective, noun = words[a], words[n]
        result.append(
            Occurrence(
                adjective.canonical, noun.canonical, adjective.start, adjective.end, noun.start, noun.end, relation
            )
        )
    return result
