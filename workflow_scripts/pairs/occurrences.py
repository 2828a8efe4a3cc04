"""The adjective-noun pairs of one caption: the surface first, the parse where the surface says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workflow_scripts.pairs import parse, surface
from workflow_scripts.pairs.words import Word

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


def occurrences(doc: Doc, words: list[Word], at: dict[int, int]) -> list[Occurrence]:
    """All pairs of a parsed caption, in the order of their adjectives and nouns.

    Args:
        words: the caption as a row of words
        at: from a token's index to its word's

    An adjective with a noun by the surface keeps it; what the parse alone says of it is disputed. So is what the
    parse hangs on a noun further left: in `a white belly grey back` it may do so, a reader does not.
    """
    links, nowhere = surface.find(words)
    found = {(link.adjective, link.noun): link.relation for link in reversed(links)}
    settled = nowhere | {adjective for adjective, _ in found}
    for link in parse.find(doc, words, at):
        leftward = link.relation == "attributive" and link.noun < link.adjective
        relation = "disputed" if leftward or link.adjective in settled else link.relation
        found.setdefault((link.adjective, link.noun), relation)
    result = []
    for (a, n), relation in sorted(found.items()):
        adjective, noun = words[a], words[n]
        places = (adjective.start, adjective.end, noun.start, noun.end)
        result.append(Occurrence(adjective.canonical, noun.canonical, *places, relation))
    return result
