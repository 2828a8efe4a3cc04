"""Find the adjective-noun pairs of a caption: by the surface first, else by the parse."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workflow_scripts.pairs import parse, surface
from workflow_scripts.pairs.words import Word

if TYPE_CHECKING:
    from spacy.tokens import Doc


class Occurrence(NamedTuple):
    """A row of pairs.parquet without its caption: canonical words, character offsets, relation."""

    adjective: str
    noun: str
    adjective_start: int
    adjective_end: int
    noun_start: int
    noun_end: int
    relation: str


def occurrences(doc: Doc, words: list[Word], at: dict[int, int]) -> list[Occurrence]:
    """Return all pairs of a parsed caption, in the order of their adjectives and nouns; ``at`` is ``words.spans``.

    An adjective with a noun by the surface keeps it; another noun by the parse alone is disputed. So is a noun to the
    left of an attributive adjective: in `a white belly grey back` the parser may choose it, a reader does not.
    """
    links, nowhere = surface.find(words)
    relations = {(link.adjective, link.noun): link.relation for link in reversed(links)}
    settled = nowhere | {adjective for adjective, _ in relations}
    for link in parse.find(doc, words, at):
        leftward = link.relation == "attributive" and link.noun < link.adjective
        relation = "disputed" if leftward or link.adjective in settled else link.relation
        relations.setdefault((link.adjective, link.noun), relation)
    result = []
    for (a, n), relation in sorted(relations.items()):
        adjective, noun = words[a], words[n]
        places = (adjective.start, adjective.end, noun.start, noun.end)
        result.append(Occurrence(adjective.canonical, noun.canonical, *places, relation))
    return result
