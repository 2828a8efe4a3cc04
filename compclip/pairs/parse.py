"""Find pairs by the dependency parse: attributive and predicative, through conjunctions and relative clauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compclip.pairs.surface import Link
from compclip.pairs.words import Part, Word

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

SUBJECTS = frozenset(("nsubj", "nsubjpass"))
PREDICATES = frozenset(("acomp", "attr", "oprd"))
MODIFIERS = frozenset(("amod", "compound", "nmod", "npadvmod"))


def find(doc: Doc, words: list[Word], at: dict[int, int]) -> list[Link]:
    """Return the pairs of relation attributive, predicative and, for further subjects, shared."""
    parser = _Parse(words, at)
    return [
        Link(n, noun, relation)
        for n, word in enumerate(words)
        if word.part is Part.ADJECTIVE
        for noun, relation in parser.nouns(doc[word.last])
    ]


class _Parse:
    """Walks from an adjective's token to the nouns that it modifies."""

    def __init__(self, words: list[Word], at: dict[int, int]) -> None:
        self.words, self.at = words, at

    def part(self, token: Token) -> Part:
        return self.words[self.at[token.i]].part

    def nouns(self, token: Token) -> list[tuple[int, str]]:
        """Return the positions of the nouns among the words, with the relation."""
        while True:
            dep, head = token.dep_, token.head
            if dep == "conj" and self.part(head) is Part.ADJECTIVE:
                token = head
            elif any(child.dep_ == "auxpass" for child in token.children):
                return self.subjects(token)
            elif dep in MODIFIERS and self.part(head) is Part.ADJECTIVE and head is not token:
                token = head  # stacked: spaCy attaches the first adjective to the second
            elif dep in MODIFIERS and self.part(head) is Part.NOUN and self.at[head.i] != self.at[token.i]:
                return [(self.at[head.i], "attributive")]
            elif dep in PREDICATES and self.part(head) is Part.BE:
                return self.subjects(head)
            else:
                return []

    def subjects(self, verb: Token) -> list[tuple[int, str]]:
        """Return the nouns that a copula's predicate modifies: the nearest of its subject, then those that share it."""
        subjects = [child for child in verb.children if child.dep_ in SUBJECTS]
        while not subjects and verb.dep_ == "conj":
            verb = verb.head
            subjects = [child for child in verb.children if child.dep_ in SUBJECTS]
        if not subjects or self.part(subjects[0]) is Part.THAT:
            # A relative clause: its antecedent is the noun.
            antecedent = verb.dep_ == "relcl" and self.part(verb.head) is Part.NOUN
            return [(self.at[verb.head.i], "predicative")] if antecedent else []
        nouns = []
        queue = subjects[:1]
        while queue:
            token = queue.pop()
            if self.part(token) is Part.NOUN:
                nouns.append(self.at[token.i])
            queue.extend(child for child in token.children if child.dep_ == "conj")
        nouns.sort(reverse=True)
        return [(noun, "shared" if position else "predicative") for position, noun in enumerate(nouns)]
