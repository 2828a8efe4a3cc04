"""A parsed caption as a row of words, each with the part it can play in a pair.

The lexicons go before the tagger: a model that takes `orange` for a noun or `back` for an adverb does not
matter for words that a lexicon knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from workflow_scripts.common.lexicon import Lexicon, merge

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token


class Part(Enum):
    """What a word can be in a noun phrase or a predicate."""

    ADJECTIVE = "adjective"
    NOUN = "noun"
    AND = "conjunction"  # and, or, but, a comma
    MODIFIER = "modifier"  # adverbs and `colored`: they stand inside a phrase and add no pair
    BE = "copula"
    THAT = "relative pronoun"
    START = "determiner"  # a, the, its: a phrase begins
    OTHER = "other"  # prepositions, verbs: a phrase ends


@dataclass(frozen=True, slots=True)
class Word:
    """One word; a form of several tokens (`eye ring`) is one.

    Attributes:
        group: the lexicon that lists it, or empty
        start, end: characters of the text, end exclusive
        first, last: its tokens in the parsed caption, both inclusive
        lower: its first token, lower case
    """

    part: Part
    canonical: str
    group: str
    start: int
    end: int
    first: int
    last: int
    lower: str


class Entry(NamedTuple):
    """What a lexicon says of a form."""

    part: Part
    canonical: str
    group: str


# Transparent words: `brown colored wings` are brown wings, a `small sized bird` is a small bird.
TRANSPARENT = frozenset(
    "colored coloured color-ed sized shaped looking toned hued shaded tinted appearing like ish size in-color".split()
)
# With a color before them they say what color the edge or the tip is, not the whole.
EDGED = frozenset("tipped edged rimmed ringed lined trimmed tinged bordered fringed outlined accented flecked".split())
# Nouns that name a place or a color of what stands before them: a `belly area` is a belly.
VAGUE = frozenset("area areas region regions section color colors coloring coloration colour colours".split())
# The whole: in `white belly bird` the belly is white.
WHOLE = frozenset("bird birds duck ducks gull gulls".split())
COPULAS = frozenset("look looks appear appears seem seems".split())
RELATIVE = frozenset("that which thats".split())
CONJUNCTIONS = frozenset(("and", "or", "but", "yet", "&", "n", "nd", "ans", ",", "/", "plus"))
# Tagged as adjectives, they point or count.
NOT_ADJECTIVES = frozenset(
    "such other many several own same few much more most less least certain various multiple another all some".split()
)
WORDS_BACK_IS_ADVERB_AFTER = frozenset("swept pointed pulled laid folded going goes leading swooping slicked".split())


def _token_part(token: Token) -> Part:
    lower, tag, pos = token.lower_, token.tag_, token.pos_
    if lower in TRANSPARENT:
        return Part.MODIFIER
    if lower in CONJUNCTIONS:
        return Part.AND
    if lower in RELATIVE and tag != "DT":
        return Part.THAT
    if lower in COPULAS and pos in ("VERB", "AUX") or token.lemma_ == "be" and pos in ("AUX", "VERB"):
        return Part.BE
    if lower in NOT_ADJECTIVES:
        return Part.MODIFIER
    if tag in ("JJ", "JJR", "JJS"):
        return Part.ADJECTIVE
    if pos in ("NOUN", "PROPN"):
        return Part.NOUN
    if tag in ("VBN", "VBD", "VBG") and _is_participle(token):
        return Part.ADJECTIVE
    if pos == "ADV":
        return Part.MODIFIER
    if tag in ("DT", "PRP$", "CD", "POS", "PDT"):
        return Part.START
    if token.text == "-":
        return Part.MODIFIER
    return Part.OTHER


def _is_participle(token: Token) -> bool:
    """Whether a participle stands where an adjective stands: `a pointed bill`, `is pointed`."""
    if token.dep_ in ("amod", "acomp"):
        return True
    if token.tag_ == "VBG":
        return False
    head = token.head
    if token.dep_ == "conj" and head.tag_.startswith("JJ"):
        return True
    if any(child.dep_ == "auxpass" for child in token.children):
        return not any(child.dep_ in ("agent", "prep") for child in token.children)
    following = token.doc[token.i + 1] if token.i + 1 < len(token.doc) else None
    return following is not None and following.pos_ in ("NOUN", "PROPN") and following.dep_ != "dobj"


class Vocabulary:
    """The lexicons, ready to be matched against a pipeline's tokens.

    Args:
        nlp: the pipeline whose tokenizer splits the lexicons' forms of several words
        adjectives: all adjective lexicons of the run
        nouns: the noun lexicon, or None where any noun goes by its lemma
    """

    def __init__(self, nlp: Language, adjectives: Sequence[Lexicon], nouns: Lexicon | None) -> None:
        # One word in two lexicons is an error of the user's.
        merge([*adjectives, nouns] if nouns else adjectives)
        self.entries: dict[str, Entry] = {}
        self.phrases: dict[str, list[tuple[tuple[str, ...], Entry]]] = {}
        lexicons = [(lexicon, Part.ADJECTIVE) for lexicon in adjectives] + ([(nouns, Part.NOUN)] if nouns else [])
        for lexicon, part in lexicons:
            for form, canonical in lexicon.forms.items():
                tokens = tuple(token.lower_ for token in nlp.make_doc(form))
                entry = Entry(part, canonical, lexicon.name)
                if len(tokens) == 1:
                    self.entries[tokens[0]] = entry
                else:
                    self.phrases.setdefault(tokens[0], []).append((tokens, entry))
        for phrases in self.phrases.values():
            phrases.sort(key=lambda phrase: (-len(phrase[0]), phrase[0]))

    def _match(self, lowers: list[str], i: int) -> tuple[int, Entry] | None:
        """The longest form that begins at token ``i``, as its number of tokens and its entry."""
        for tokens, entry in self.phrases.get(lowers[i], ()):
            if tuple(lowers[i : i + len(tokens)]) == tokens:
                return len(tokens), entry
        entry = self.entries.get(lowers[i])
        return (1, entry) if entry else None

    def words(self, doc: Doc) -> list[Word]:
        """The caption's words, in order."""
        lowers = [token.lower_ for token in doc]
        result: list[Word] = []
        i = 0
        while i < len(doc):
            token = doc[i]
            match = self._match(lowers, i)
            if match:
                length, (part, canonical, group) = match
                if part is Part.NOUN:
                    part = self._noun_part(doc, i)
            else:
                length, group = 1, ""
                part = _token_part(token)
                canonical = self._fold(token, part)
            last = doc[i + length - 1]
            result.append(
                Word(part, canonical, group, token.idx, last.idx + len(last), i, i + length - 1, token.lower_)
            )
            i += length
        return result

    def _noun_part(self, doc: Doc, i: int) -> Part:
        """A listed noun, save where its word is an adverb (`swept back`)."""
        token = doc[i]
        before = doc[i - 1].lower_ if i else ""
        if token.lower_ == "back" and token.pos_ in ("ADV", "PART") and before in WORDS_BACK_IS_ADVERB_AFTER:
            return Part.MODIFIER
        return Part.NOUN

    def _fold(self, token: Token, part: Part) -> str:
        """A word that no lexicon lists: a noun by its lemma, an adjective as it stands.

        `longer` stays apart from `long` and `spotted` from `spot`: they say something else.
        """
        if part is not Part.NOUN:
            return token.lower_
        lemma = token.lemma_.lower()
        entry = self.entries.get(lemma)
        if entry is None:
            return lemma
        return entry.canonical if entry.part is Part.NOUN else token.lower_


def spans(words: Iterable[Word]) -> dict[int, int]:
    """From a token's index to the index of the word that holds it."""
    return {i: n for n, word in enumerate(words) for i in range(word.first, word.last + 1)}
