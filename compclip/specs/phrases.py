"""Find the places where a caption can end and be complete: the ends of phrases and clauses, by the
dependency parse.

A place between two words is an end if the words before it are complete without a relation across
it. A noun is not separated from its adjectives or its `of`, a verb not from its object, a
preposition not from its noun. A subject is separated from its verb, and a phrase from further
details: prepositional phrases, participles, relative and adverbial clauses, appositions, and what
`and` joins.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

# Relations (spaCy's labels) to a preceding head that is complete without the word.
FOLLOWING_RELATIONS = frozenset(
    "prep agent relcl acl advcl appos conj cc punct parataxis dep meta intj".split()
)
# Relations to a following head without which the word is complete.
PRECEDING_RELATIONS = frozenset(
    "prep agent advcl ccomp parataxis conj punct dep meta intj csubj csubjpass".split()
)
ADVERBS = frozenset("advmod npadvmod".split())  # belong to their neighbors: `is located centrally`
SUBJECT_RELATIONS = frozenset("nsubj nsubjpass".split())
COMPLEMENTS = frozenset("attr acomp oprd dobj xcomp ccomp prt".split())

CLAUSES = frozenset("acl relcl advcl pcomp".split())
# `black and white in color` stays together.
RESPECTS = frozenset(
    "color colour size shape length appearance tone hue texture style nature height width".split()
)

BE = frozenset("is are was were be been being am 's 're".split())
# Words that are incomplete without the preposition after them.
UNFINISHED = frozenset(
    "accented accompanied according adhere adheres adorned appear appearing appears attached based "
    "belong belonging belongs carved characteristic characterized clad compared composed comprised "
    "consist consisting consists contribute contributes contributing covered decorated depend "
    "depending depends devoid dotted dressed due encircled equipped filled flanked framed "
    "indicative inscribed lead leading leads lined located made marked named point pointing points "
    "positioned range ranges ranging refer refers reminiscent seem seems serve serves serving "
    "situated suggestive surrounded titled topped typical".split()
)
# begin a construction of two parts: `both … and`
PAIRED = frozenset("both either neither between".split())
# Tags of words that cannot end a phrase: conjunctions, articles, prepositions, `to`, modals, `who`,
# `whose`.
OPEN_TAGS = frozenset("CC DT PDT IN TO MD WDT WP WP$ WRB PRP$ EX POS".split())
TERMINAL = frozenset(". ! ? … 。 ！ ？ ...".split())
CLOSING = frozenset(") ] } ” ’ » ''".split())
OPENING_MARKS = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "``": "''", '"': '"'}
SEPARATOR_MARKS = frozenset(", ; : — – --".split())  # follow a word without a space
NO_TOKENS = slice(0, 0)


def chunk_ends(doc: Doc) -> list[int]:
    """Return the end of each chunk, as an increasing character offset; the last one is
    ``len(text.rstrip())``.

    A chunk is a noun phrase with the words before it, a verb with its complements, a prepositional
    phrase or a clause. It has a word with a letter if the text has one. Punctuation that ends a
    sentence or closes a bracket belongs to the chunk before it, other punctuation to the chunk
    after it. A blank text has no chunks.
    """
    words = [token for token in doc if not token.is_space]
    if not words:
        return []
    undivided = _undivided(doc)
    ends = []
    has_word = False  # in the chunk since the last end
    for last, first in pairwise(words):
        has_word = has_word or _has_letter(last)
        if has_word and not undivided[first.i] and _can_stop(last, first):
            ends.append(_end(last))
            has_word = False
    # A rest without a word, such as a closing bracket, belongs to the chunk before it.
    if ends and not has_word and not _has_letter(words[-1]):
        ends.pop()
    return [*ends, _end(words[-1])]


def _end(token: Token) -> int:
    return token.idx + len(token)


def _has_letter(token: Token) -> bool:
    return any(map(str.isalpha, token.text))


def _undivided(doc: Doc) -> np.ndarray:
    """Return, for each token, whether the place before it is inside a unit that must not be
    divided.
    """
    undivided = _in_brackets(doc)
    for token in doc:
        if token.i < token.head.i:
            undivided[_joined_to_following(token, token.head)] = True
        elif token.i > token.head.i:
            undivided[_joined_to_preceding(token, token.head)] = True
    return undivided


def _joined_to_following(token: Token, head: Token) -> slice:
    """Return the tokens that are joined to the one before them, because ``token`` belongs to
    ``head``, after it.
    """
    if token.dep_ in ADVERBS and token.tag_ != "WRB":
        following = token.right_edge.i + 1
        return slice(following, following + 1)
    if token.dep_ in PRECEDING_RELATIONS:
        return NO_TOKENS
    if token.dep_ in SUBJECT_RELATIONS and _is_descriptive(token) and _is_main(head):
        return NO_TOKENS
    return slice(token.i + 1, head.i + 1)


def _joined_to_preceding(token: Token, head: Token) -> slice:
    """Return the tokens that are joined to the one before them, because ``token`` belongs to
    ``head``, before it.
    """
    if token.dep_ in ADVERBS and head.tag_ not in ("IN", "TO"):
        start = token.left_edge.i
        return slice(start, start + 1)
    if token.dep_ not in FOLLOWING_RELATIONS or _needed(token, head):
        return slice(head.i + 1, token.i + 1)
    if token.dep_ == "prep" and token.lower_ == "to" and _follows_from(token, head):
        return slice(token.i, token.i + 1)
    return NO_TOKENS


def _follows_from(token: Token, head: Token) -> bool:
    """Return whether ``token`` ends a range: the `to` of `from left to right`."""
    for sibling in head.rights:
        is_from = sibling.lower_ == "from" and sibling.dep_ == "prep"
        if is_from and sibling.right_edge.i + 1 == token.i:
            return True
    return False


def _is_descriptive(subject: Token) -> bool:
    """Return whether a subject is descriptive: `the bird`, `one of them`, not `it` or `which`."""
    if subject.tag_.startswith("N"):
        return True
    # `one of them` is a phrase of three words, `it` and `which` are not.
    is_pronoun = subject.tag_ in ("WP", "WDT", "EX", "PRP")
    return not is_pronoun and subject.right_edge.i - subject.left_edge.i >= 2


def _is_main(verb: Token) -> bool:
    """Return whether ``verb`` heads a main clause: the sentence's, a coordinated one, or one before
    a comma splice.
    """
    while verb.dep_ == "conj" or (verb.dep_ in ("ccomp", "parataxis") and verb.i < verb.head.i):
        verb = verb.head
    return verb.dep_ == "ROOT"


def _needed(token: Token, head: Token) -> bool:
    """Return whether the text up to ``head`` is incomplete without ``token``, which follows it."""
    if token.dep_ == "punct":
        return False
    if token.dep_ in ("conj", "cc"):
        return _is_needed_conjunct(token, head)
    if head.tag_ in ("IN", "TO") or token.tag_ == "PRP" or _is_bound(token, head):
        return True
    complements = [child for child in head.rights if child.dep_ in COMPLEMENTS]
    is_complete = any(child.i < token.i for child in complements)
    if token.dep_ not in ("prep", "agent"):
        return head.lower_ in BE and not is_complete
    if head.lower_ in BE | UNFINISHED and not is_complete:
        return True
    return _is_bound_preposition(token, head, is_complete)


def _is_needed_conjunct(token: Token, head: Token) -> bool:
    """Return whether a conjunction or what it joins is needed: `both … and …`, `black and white in
    color`.
    """
    if token.dep_ == "conj" and _in_respect(token.doc, token.i + 1):
        return True
    return head.head.lower_ in PAIRED or any(child.lower_ in PAIRED for child in head.lefts)


def _is_bound(token: Token, head: Token) -> bool:
    """Return whether ``token`` belongs to ``head`` in ``as … as``, ``Venice, Italy`` or ``an
    attempt to block it``.
    """
    first = token.left_edge
    if first.lower_ == "as":
        words = [head, *head.lefts]
        if any(word.lower_ == "as" for word in words):  # `as big as`
            return True
    if token.dep_ == "appos":  # `Venice, Italy`
        return token.tag_ == head.tag_ == "NNP"
    return token.dep_ == "acl" and first.tag_ == "TO"  # `an attempt to block it`


def _is_bound_preposition(token: Token, head: Token, is_complete: bool) -> bool:
    """Return whether a preposition belongs to the word before it; ``is_complete``: that word has a
    complement.
    """
    if token.lower_ in ("of", "than") or not any(token.rights) or _in_respect(token.doc, token.i):
        return True
    if head.i + 1 != token.left_edge.i:
        return False
    if head.tag_.startswith("RB"):  # `next to it`
        return True
    if head.tag_ == "VBN" and token.lower_ == "with":  # `is caked with mud`
        return True
    return head.dep_ in CLAUSES and not is_complete  # `that rests on her knees`


def _in_respect(doc: Doc, index: int) -> bool:
    """Return whether the token at ``index`` begins a phrase such as `in color`."""
    words = doc[index : index + 2]
    return len(words) == 2 and words[0].lower_ == "in" and words[1].lower_ in RESPECTS


def _in_brackets(doc: Doc) -> np.ndarray:
    """Return, for each token, whether the place before it is in brackets or a quotation that its
    sentence closes.
    """
    inside = np.zeros(len(doc), bool)
    for sentence in doc.sents:
        opened: list[tuple[str, int]] = []
        for token in sentence:
            mark = token.text
            if opened and mark == opened[-1][0]:
                _, start = opened.pop()
                inside[start + 1 : token.i + 1] = True
            elif mark in OPENING_MARKS:
                opened.append((OPENING_MARKS[mark], token.i))
    return inside


def _can_stop(last: Token, first: Token) -> bool:
    """Return whether these two words allow a text to end with ``last`` and continue with
    ``first``.
    """
    is_separated = _end(last) < first.idx
    if first.is_sent_start and last.text[-1] in TERMINAL | CLOSING | {'"', "'"}:
        return is_separated
    if not is_separated and first.text not in SEPARATOR_MARKS:
        return False
    # These belong to the words before them.
    if first.text in TERMINAL | CLOSING:
        return False
    # A quotation is complete, whatever the words in it are.
    if last.text in CLOSING or (last.is_punct and last.text == '"'):
        return True
    if last.is_punct or last.is_quote or last.is_bracket or _belongs_together(last, first):
        return False
    is_auxiliary = last.lower_ in BE and last.dep_ in ("aux", "auxpass")
    return last.tag_ not in OPEN_TAGS and not is_auxiliary


def _belongs_together(last: Token, first: Token) -> bool:
    """Return whether two words are one phrase, however they were parsed: a noun and what precedes
    it, `side by side`, `black and white birds`, `s` as a possessive without its apostrophe.
    """
    following = first.doc[first.i : first.i + 3]
    tags = [token.tag_[:2] for token in following]
    last_tag = last.tag_[:2]
    if last_tag in ("JJ", "NN") and tags[0] == "NN":
        return True
    if first.lower_ == "s":  # `a bird s wing`
        return True
    # `side by side`
    is_preposition = first.tag_ == "IN" and len(following) > 1
    if is_preposition and following[1].lower_ == last.lower_:
        return True
    # A coordinated adjective is sometimes tagged as a verb.
    return last_tag == "JJ" and tags in (["CC", "JJ", "NN"], ["CC", "VB", "NN"])
