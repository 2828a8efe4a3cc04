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
    "accented accompanied according adhere adheres adorned appear appearing appears attached "
    "based belong"
    " belonging belongs carved characteristic characterized clad compared composed comprised "
    "consist consisting"
    " consists contribute contributes contributing covered decorated depend depending depends "
    "devoid dotted"
    " dressed due encircled equipped filled flanked framed indicative inscribed lead leading "
    "leads lined located"
    " made marked named point pointing points positioned range ranges ranging refer refers "
    "reminiscent seem seems"
    " serve serves serving situated suggestive surrounded titled topped typical".split()
)
PAIRED = frozenset(
    "both either neither between".split()
)  # begin a construction of two parts: `both … and`
# Tags of words that cannot end a phrase: conjunctions, articles, prepositions, `to`, modals, `who`,
# `whose`.
OPEN_TAGS = frozenset("CC DT PDT IN TO MD WDT WP WP$ WRB PRP$ EX POS".split())
TERMINAL = frozenset(". ! ? … 。 ！ ？ ...".split())
CLOSING = frozenset(") ] } ” ’ » ''".split())
OPENING_MARKS = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "``": "''", '"': '"'}
SEPARATOR_MARKS = frozenset(", ; : — – --".split())  # follow a word without a space


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
    inside, letters = _inside(doc), [any(map(str.isalpha, token.text)) for token in words]
    ends, has_word = [], False
    for (last, first), has_letter in zip(pairwise(words), letters, strict=False):
        has_word = has_word or has_letter
        if has_word and not inside[first.i] and _can_stop(last, first):
            ends.append(last.idx + len(last))
            has_word = False
    if ends and not has_word and not letters[-1]:
        ends.pop()
    return [*ends, words[-1].idx + len(words[-1])]


def _inside(doc: Doc) -> np.ndarray:
    """Return, for each token, whether the place before it is inside a unit that must not be
    divided.
    """
    inside = _in_brackets(doc)
    for token in doc:
        head = token.head
        if token.i < head.i:
            if token.dep_ in ADVERBS and token.tag_ != "WRB":
                inside[token.right_edge.i + 1] = True
            elif not (
                token.dep_ in PRECEDING_RELATIONS
                or (token.dep_ in SUBJECT_RELATIONS and _is_descriptive(token) and _is_main(head))
            ):
                inside[token.i + 1 : head.i + 1] = True
        elif token.i > head.i:
            if token.dep_ in ADVERBS and head.tag_ not in ("IN", "TO"):
                inside[token.left_edge.i] = True
            elif token.dep_ not in FOLLOWING_RELATIONS or _needed(token, head):
                inside[head.i + 1 : token.i + 1] = True
            elif token.dep_ == "prep" and token.lower_ == "to":
                # `from left to right`
                for sibling in head.rights:
                    if (
                        sibling.lower_ == "from"
                        and sibling.dep_ == "prep"
                        and sibling.right_edge.i + 1 == token.i
                    ):
                        inside[token.i] = True
    return inside


def _is_descriptive(subject: Token) -> bool:
    """Return whether a subject is descriptive: `the bird`, `one of them`, not `it` or `which`."""
    if subject.tag_.startswith("N"):
        return True
    return (
        subject.tag_ not in ("WP", "WDT", "EX", "PRP")
        and subject.right_edge.i - subject.left_edge.i >= 2
    )


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
        in_color = token.dep_ == "conj" and _in_respect(token.doc, token.i + 1)
        return (
            in_color
            or head.head.lower_ in PAIRED
            or any(child.lower_ in PAIRED for child in head.lefts)
        )
    if head.tag_ in ("IN", "TO") or token.tag_ == "PRP" or _is_bound(token, head):
        return True
    complete = any(child.dep_ in COMPLEMENTS and child.i < token.i for child in head.rights)
    if token.dep_ in ("prep", "agent"):
        unfinished = head.lower_ in BE | UNFINISHED and not complete
        return unfinished or _is_bound_preposition(token, head, complete)
    return head.lower_ in BE and not complete


def _is_bound(token: Token, head: Token) -> bool:
    """Return whether ``token`` belongs to ``head`` in ``as … as``, ``Venice, Italy`` or ``an
    attempt to block it``.
    """
    first = token.left_edge
    if first.lower_ == "as" and (
        head.lower_ == "as" or any(child.lower_ == "as" for child in head.lefts)
    ):
        return True
    if token.dep_ == "appos":
        return token.tag_ == head.tag_ == "NNP"
    return token.dep_ == "acl" and first.tag_ == "TO"


def _is_bound_preposition(token: Token, head: Token, complete: bool) -> bool:
    """Return whether a preposition belongs to the word before it; ``complete``: that word has a
    complement.
    """
    if token.lower_ in ("of", "than") or not any(token.rights) or _in_respect(token.doc, token.i):
        return True
    # directly after it: `next to it`, `is caked with mud`, `that rests on her knees`
    return head.i + 1 == token.left_edge.i and (
        head.tag_.startswith("RB")
        or (head.tag_ == "VBN" and token.lower_ == "with")
        or (head.dep_ in CLAUSES and not complete)
    )


def _in_respect(doc: Doc, at: int) -> bool:
    return at + 1 < len(doc) and doc[at].lower_ == "in" and doc[at + 1].lower_ in RESPECTS


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
    separated = last.idx + len(last) < first.idx
    if first.is_sent_start and last.text[-1] in TERMINAL | CLOSING | {'"', "'"}:
        return separated
    if not separated and first.text not in SEPARATOR_MARKS:
        return False
    if first.text in TERMINAL or first.text in CLOSING:
        return False
    if last.text in CLOSING or (last.is_punct and last.text == '"'):
        return True
    if last.is_punct or last.is_quote or last.is_bracket or _belongs_together(last, first):
        return False
    return last.tag_ not in OPEN_TAGS and not (
        last.lower_ in BE and last.dep_ in ("aux", "auxpass")
    )


def _belongs_together(last: Token, first: Token) -> bool:
    """Return whether two words are one phrase, however they were parsed: a noun and what precedes
    it, `side by side`, `black and white birds`, `s` as a possessive without its apostrophe.
    """
    tags = [token.tag_[:2] for token in first.doc[first.i : first.i + 3]]
    if (last.tag_[:2] in ("JJ", "NN") and tags[0] == "NN") or first.lower_ == "s":
        return True
    if first.tag_ == "IN" and first.i + 1 < len(first.doc) and first.nbor().lower_ == last.lower_:
        return True
    return last.tag_[:2] == "JJ" and tags in (["CC", "JJ", "NN"], ["CC", "VB", "NN"])
