"""Find pairs by the dependency parse: attributive and predicative, through conjunctions and
relative clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compclip.pairs.surface import Link
from compclip.pairs.words import Role, Word
from compclip.text.grammar import WORDS

if TYPE_CHECKING:
    from spacy.tokens import Token

SUBJECT_LABELS = frozenset(("nsubj", "nsubjpass"))
PREDICATE_LABELS = frozenset(("acomp", "attr", "oprd"))
# Of a color after `painted`, which the parser takes for an adverb, too.
RESULT_LABELS = frozenset(("oprd", "advmod", "acomp", "xcomp", "dobj"))
MODIFIER_LABELS = frozenset(("amod", "compound", "nmod", "npadvmod"))


def find_by_parse(
    tokens: Sequence[Token], words: list[Word], word_of_token: dict[int, int]
) -> list[Link]:
    """Return the pairs of relation attributive, predicative and, for further subjects, shared."""
    roles = [words[word_of_token[i]].part for i in range(len(tokens))]
    links = []
    for n, word in enumerate(words):
        if word.part is Role.ADJECTIVE:
            for noun, relation in _modified(tokens[word.last], roles, word_of_token):
                links.append(Link(n, word_of_token[noun], relation))
    return links


def _modified(
    token: Token, roles: list[Role], word_of_token: dict[int, int]
) -> list[tuple[int, str]]:
    """Return the tokens of the nouns that an adjective modifies, with the relation."""
    while True:
        label = token.dep_
        head = token.head
        head_role = roles[head.i]
        if label == "conj" and head_role is Role.ADJECTIVE:
            token = head
        elif any(child.dep_ == "auxpass" for child in token.children):
            return _subjects(token, roles)
        elif label in RESULT_LABELS and head.lower_ in WORDS.painted and head.i < token.i:
            token = head  # `the fence has been painted white`
        elif label in MODIFIER_LABELS:
            is_stacked = head_role is Role.ADJECTIVE and head is not token
            if not is_stacked:
                # The head may be another token of the same word, such as `eye ring`.
                is_noun = head_role is Role.NOUN
                is_other_word = word_of_token[head.i] != word_of_token[token.i]
                return [(head.i, "attributive")] if is_noun and is_other_word else []
            token = head  # spaCy attaches the first adjective of a stack to the second
        elif label in PREDICATE_LABELS and head_role is Role.BE:
            return _subjects(head, roles)
        else:
            return []


def _subjects(verb: Token, roles: list[Role]) -> list[tuple[int, str]]:
    """Return the nouns that a copula's predicate modifies: the nearest one of its subject, then
    those that share it.
    """
    subjects = _subjects_of(verb)
    while not subjects and verb.dep_ == "conj":
        verb = verb.head
        subjects = _subjects_of(verb)
    if not subjects or roles[subjects[0].i] is Role.THAT:
        # A relative clause: its antecedent is the noun.
        antecedent = verb.head.i
        is_antecedent = verb.dep_ == "relcl" and roles[antecedent] is Role.NOUN
        return [(antecedent, "predicative")] if is_antecedent else []
    nouns = []
    # Nouns that are coordinated with the first subject are its children.
    queue = subjects[:1]
    while queue:
        token = queue.pop()
        if roles[token.i] is Role.NOUN:
            nouns.append(token.i)
        queue.extend(child for child in token.children if child.dep_ == "conj")
    nearest_first = sorted(nouns, reverse=True)
    return [(noun, "shared" if n else "predicative") for n, noun in enumerate(nearest_first)]


def _subjects_of(verb: Token) -> list[Token]:
    return [child for child in verb.children if child.dep_ in SUBJECT_LABELS]
