"""Find pairs by the dependency parse: attributive and predicative, through conjunctions and
relative clauses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compclip.pairs.surface import Link
from compclip.pairs.words import Role, Word
from compclip.text.grammar import WORDS

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

SUBJECT_LABELS = frozenset(("nsubj", "nsubjpass"))
PREDICATE_LABELS = frozenset(("acomp", "attr", "oprd"))
# Of a color after `painted`, which the parser takes for an adverb, too.
RESULT_LABELS = frozenset(("oprd", "advmod", "acomp", "xcomp", "dobj"))
MODIFIER_LABELS = frozenset(("amod", "compound", "nmod", "npadvmod"))


def find_by_parse(doc: Doc, words: list[Word], at: dict[int, int]) -> list[Link]:
    """Return the pairs of relation attributive, predicative and, for further subjects, shared."""
    parts = [words[at[i]].part for i in range(len(doc))]
    return [
        Link(n, at[noun], relation)
        for n, word in enumerate(words)
        if word.part is Role.ADJECTIVE
        for noun, relation in _modified(doc[word.last], parts, at)
    ]


def _modified(token: Token, parts: list[Role], at: dict[int, int]) -> list[tuple[int, str]]:
    """Return the tokens of the nouns that an adjective modifies, with the relation."""
    while True:
        dep, head = token.dep_, token.head
        if dep == "conj" and parts[head.i] is Role.ADJECTIVE:
            token = head
        elif any(child.dep_ == "auxpass" for child in token.children):
            return _subjects(token, parts)
        elif dep in RESULT_LABELS and head.lower_ in WORDS.painted and head.i < token.i:
            token = head  # `the fence has been painted white`
        elif dep in MODIFIER_LABELS and parts[head.i] is Role.ADJECTIVE and head is not token:
            token = head  # stacked: spaCy attaches the first adjective to the second
        elif dep in MODIFIER_LABELS and parts[head.i] is Role.NOUN and at[head.i] != at[token.i]:
            return [(head.i, "attributive")]
        elif dep in PREDICATE_LABELS and parts[head.i] is Role.BE:
            return _subjects(head, parts)
        else:
            return []


def _subjects(verb: Token, parts: list[Role]) -> list[tuple[int, str]]:
    """Return the nouns that a copula's predicate modifies: the nearest one of its subject, then
    those that share it.
    """
    while (
        not (subjects := [child for child in verb.children if child.dep_ in SUBJECT_LABELS])
        and verb.dep_ == "conj"
    ):
        verb = verb.head
    if not subjects or parts[subjects[0].i] is Role.THAT:
        # A relative clause: its antecedent is the noun.
        is_antecedent = verb.dep_ == "relcl" and parts[verb.head.i] is Role.NOUN
        return [(verb.head.i, "predicative")] if is_antecedent else []
    nouns, queue = list[int](), subjects[:1]
    while queue:
        token = queue.pop()
        if parts[token.i] is Role.NOUN:
            nouns.append(token.i)
        queue.extend(child for child in token.children if child.dep_ == "conj")
    return [
        (noun, "shared" if n else "predicative")
        for n, noun in enumerate(sorted(nouns, reverse=True))
    ]
