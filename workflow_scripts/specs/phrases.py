"""Where a caption may stop and still read as one: the ends of its phrases and clauses, by the dependency parse.

A place between two words is an end where no relation across it is one that the words before need: a noun is not
parted from its adjectives nor from its `of`, a verb not from its object, a preposition not from its noun. Parted are
a subject from its verb, and what follows a phrase as a further detail: prepositional phrases, participles, relative
and adverbial clauses, appositions, what `and` joins.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

# Characters of a text that are parsed, some 4,000 words: no model reads a tenth of it.
PARSED = 20_000

Close = Callable[[int, int], None]

# Relations (spaCy's labels) to a head before it of a word that adds to what is complete without it.
FOLLOWS = frozenset("prep agent relcl acl advcl appos conj cc punct parataxis dep meta intj".split())
# Relations to a head behind it of a word that can be read before that comes.
PRECEDES = frozenset("prep agent advcl ccomp parataxis conj punct dep meta intj csubj csubjpass".split())
# These belong to the words beside them, and to no others: `is located centrally`, `Overall, the image`.
ADVERBS = frozenset("advmod npadvmod".split())
SUBJECTS = frozenset("nsubj nsubjpass".split())
COMPLEMENTS = frozenset("attr acomp oprd dobj xcomp ccomp prt".split())

CLAUSES = frozenset("acl relcl advcl pcomp".split())
# `black and white in color` stays together.
RESPECTS = frozenset("color colour size shape length appearance tone hue texture style nature height width".split())

BE = frozenset("is are was were be been being am 's 're".split())
# Words that say nothing without the preposition behind them.
UNFINISHED = frozenset(
    "accented accompanied according adhere adheres adorned appear appearing appears attached based belong"
    " belonging belongs carved characteristic characterized clad compared composed comprised consist consisting"
    " consists contribute contributes contributing covered decorated depend depending depends devoid dotted"
    " dressed due encircled equipped filled flanked framed indicative inscribed lead leading leads lined located"
    " made marked named point pointing points positioned range ranges ranging refer refers reminiscent seem seems"
    " serve serves serving situated suggestive surrounded titled topped typical".split()
)
# Words that announce a second one: `both … and`, `between … and`.
PAIRED = frozenset("both either neither between".split())
# Tags of words that no phrase ends with: conjunctions, articles, prepositions, `to`, modals, `who`, `whose`.
OPEN_TAGS = frozenset("CC DT PDT IN TO MD WDT WP WP$ WRB PRP$ EX POS".split())
TERMINAL = frozenset(". ! ? … 。 ！ ？ ...".split())
CLOSING = frozenset(") ] } ” ’ » ''".split())
OPENING = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "``": "''"}
# Punctuation that a word has behind it without a space.
SEPARATORS = frozenset(", ; : — – --".split())


def chunk_ends(doc: Doc) -> list[int]:
    """The character offset behind each chunk of a parsed text: increasing, the last ``len(text.rstrip())``.

    A chunk is a noun phrase with what stands before it, a verb with what it needs, a prepositional phrase or a
    clause; it has a word with a letter of its own, as far as the text has. Punctuation that ends a sentence or closes
    a bracket belongs to the chunk before it, any other to the one behind it. A blank text has none.
    """
    words = [token for token in doc if not token.is_space]
    if not words:
        return []
    closed = _closed(doc)
    ends, spoken = [], False
    for last, first in pairwise(words):
        spoken = spoken or _has_letter(last)
        if spoken and not closed[first.i] and _stops(last, first):
            ends.append(last.idx + len(last))
            spoken = False
    if ends and not spoken and not _has_letter(words[-1]):
        ends.pop()
    return [*ends, words[-1].idx + len(words[-1])]


def with_rest(ends: list[int], parsed: str, text: str) -> list[int]:
    """The ends in a text of which ``parsed`` is the beginning; what is behind its last end but one is one chunk."""
    if len(parsed) == len(text):
        return ends
    return [*ends[:-1], len(text.rstrip())] if text.strip() else []


def _has_letter(token: Token) -> bool:
    return any(c.isalpha() for c in token.text)


def _closed(doc: Doc) -> list[bool]:
    """For each token whether the place before it lies inside of something that is not to be parted."""
    steps = [0] * (len(doc) + 1)

    def close(first: int, last: int) -> None:
        """No end before any of the tokens ``first`` to ``last``."""
        if first <= last:
            steps[first] += 1
            steps[last + 1] -= 1

    for token in doc:
        head = token.head
        if token.i < head.i:
            if token.dep_ in ADVERBS and token.tag_ != "WRB":
                close(token.right_edge.i + 1, token.right_edge.i + 1)
            elif not (token.dep_ in PRECEDES or (token.dep_ in SUBJECTS and _names(token) and _main(head))):
                close(token.i + 1, head.i)
        elif token.i > head.i:
            if token.dep_ in ADVERBS and head.tag_ not in ("IN", "TO"):
                close(token.left_edge.i, token.left_edge.i)
            elif token.dep_ not in FOLLOWS or _needed(token, head):
                close(head.i + 1, token.i)
            elif token.dep_ == "prep" and token.lower_ == "to":
                _close_span(token, close)
    _close_brackets(doc, close)
    closed, depth = [], 0
    for step in steps[:-1]:
        depth += step
        closed.append(depth > 0)
    return closed


def _names(subject: Token) -> bool:
    """Whether a subject says something by itself: `the bird`, `one of them`, not `it` or `which`."""
    if subject.tag_.startswith("N"):
        return True
    return subject.tag_ not in ("WP", "WDT", "EX", "PRP") and subject.right_edge.i - subject.left_edge.i >= 2


def _main(verb: Token) -> bool:
    """Whether ``verb`` heads a main clause: the sentence's own, one joined to it, one before a comma splice."""
    while verb.dep_ == "conj" or (verb.dep_ in ("ccomp", "parataxis") and verb.i < verb.head.i):
        verb = verb.head
    return verb.dep_ == "ROOT"


def _needed(token: Token, head: Token) -> bool:
    """Whether ``head``, which stands before ``token``, reads as broken off without it."""
    if token.dep_ == "punct":
        return False
    if token.dep_ in ("conj", "cc"):
        if token.dep_ == "conj" and _in_respect(token.doc, token.i + 1):
            return True
        return head.head.lower_ in PAIRED or any(child.lower_ in PAIRED for child in head.lefts)
    if head.tag_ in ("IN", "TO") or token.tag_ == "PRP":
        return True
    complete = any(child.dep_ in COMPLEMENTS and child.i < token.i for child in head.rights)
    if token.left_edge.lower_ == "as" and (head.lower_ == "as" or any(child.lower_ == "as" for child in head.lefts)):
        return True
    if token.dep_ == "appos" and token.tag_ == head.tag_ == "NNP":  # `Venice, Italy`
        return True
    if token.dep_ == "acl" and token.left_edge.tag_ == "TO":  # `an attempt to block it`
        return True
    if token.dep_ in ("prep", "agent"):
        if token.lower_ in ("of", "than") or not any(token.rights):
            return True
        # Nothing between: `next to it`, `is caked with mud`, `that rests on her knees`.
        if head.i + 1 == token.left_edge.i and (
            head.tag_.startswith("RB")
            or (head.tag_ == "VBN" and token.lower_ == "with")
            or (head.dep_ in CLAUSES and not complete)
        ):
            return True
        if _in_respect(token.doc, token.i):
            return True
        if head.lower_ in UNFINISHED:
            return not complete
    return head.lower_ in BE and not complete


def _in_respect(doc: Doc, at: int) -> bool:
    """Whether `in color` or the like stands at a place."""
    return at + 1 < len(doc) and doc[at].lower_ == "in" and doc[at + 1].lower_ in RESPECTS


def _close_span(to: Token, close: Close) -> None:
    """`from left to right` stays together."""
    for sibling in to.head.rights:
        if sibling.lower_ == "from" and sibling.dep_ == "prep" and sibling.right_edge.i + 1 == to.i:
            close(to.i, to.i)


def _close_brackets(doc: Doc, close: Close) -> None:
    """What stands in brackets or quotation marks stays together, within a sentence and where they are closed."""
    for sentence in doc.sents:
        opened: list[tuple[str, int]] = []
        for token in sentence:
            mark = token.text
            if opened and mark == opened[-1][0]:
                _, start = opened.pop()
                close(start + 1, token.i)
            elif mark in OPENING:
                opened.append((OPENING[mark], token.i))
            elif mark == '"':
                opened.append((mark, token.i))


def _stops(last: Token, first: Token) -> bool:
    """Whether a text may end with ``last`` and go on with ``first``, as far as these two tell."""
    separated = last.idx + len(last) < first.idx
    if first.is_sent_start and last.text[-1] in TERMINAL | CLOSING | {'"', "'"}:
        return separated
    if not separated and first.text not in SEPARATORS:
        return False
    if first.text in TERMINAL or first.text in CLOSING:
        return False
    if last.text in CLOSING or (last.is_punct and last.text == '"'):
        return True
    if last.is_punct or last.is_quote or last.is_bracket:
        return False
    # However it was parsed: an adjective or a noun goes with the noun behind it, `black and white birds` and `side by
    # side` stay together, and `s` has lost its apostrophe.
    behind = [token.tag_[:2] for token in first.doc[first.i : first.i + 3]]
    if last.tag_[:2] in ("JJ", "NN") and behind[0] == "NN" or first.lower_ == "s":
        return False
    if first.tag_ == "IN" and first.i + 1 < len(first.doc) and first.nbor().lower_ == last.lower_:
        return False
    if last.tag_[:2] == "JJ" and behind in (["CC", "JJ", "NN"], ["CC", "VB", "NN"]):
        return False
    return last.tag_ not in OPEN_TAGS and not (last.lower_ in BE and last.dep_ in ("aux", "auxpass"))
