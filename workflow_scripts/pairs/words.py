"""A parsed caption as a row of words, each with the part it can play in a pair.

The lexicons go before the tagger: a model that takes `orange` for a noun or `back` for an adverb does not
matter for words that a lexicon knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from workflow_scripts.text.language import ASKED
from workflow_scripts.text.lexicon import Lexicon, merge

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
    PLACE = "preposition"  # the nouns before and after are two things
    OTHER = "other"  # prepositions, verbs: a phrase ends


@dataclass(frozen=True, slots=True)
class Word:
    """One word; a form of several tokens (`eye ring`) is one.

    Attributes:
        group: the lexicon that lists it, or empty
        start, end: characters of the text, end exclusive
        first, last: its tokens in the parsed caption, both inclusive
        lower: its first token, lower case
        plural: by its ending
        possessed: a noun's form in -ed: `headed` in `red headed bird`
    """

    part: Part
    canonical: str
    group: str
    start: int
    end: int
    first: int
    last: int
    lower: str
    plural: bool
    possessed: bool


class Entry(NamedTuple):
    """What a lexicon says of a form."""

    part: Part
    canonical: str
    group: str


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Transparent: `brown colored wings` are brown wings, a `small sized bird` is a small bird.
TRANSPARENT = _set("colored coloured sized size shaped looking toned hued shaded tinted appearing like ish")
# With a color before them they say what color the edge or the tip is, not the whole.
EDGED = _set(
    "tipped edged rimmed ringed lined trimmed tinged bordered fringed outlined accented flecked tufted crested clawed"
)
# What is named after another noun and is what the adjective is about: `breast feathers`, `wing tips`.
CARRIERS = _set(
    "feather feathering patch spot stripe eyering wingbar bar ring marking mark streak band line tip end edge"
    " covering brow span guard pattern"
)
# As CARRIERS, behind these nouns alone: a `crown crest` is two things.
CARRIERS_OF = {"covert": _set("wing tail"), "crest": _set("head")}
# Carriers that carry nothing themselves: a `cheek patch stripe` is two things.
MARKS = _set("patch spot stripe eyering wingbar")
# Nouns that name a place, or a look, of what stands before them: a `belly area` is a belly.
VAGUE = _set("area areas region regions section sections color colors coloring coloration colour colours")
# Behind these and `of`, a color is a noun.
TONES = _set("tone shade hue hint touch mix mixture combination tint bit splash")
# Nouns that shade the color behind them.
SHADES = _set(
    "baby blood brick burgundy canary charcoal chocolate coal coffee copper cream emerald forest jet lemon lime"
    " mahogany midnight mustard navy neon ocean olive pitch powder rose royal ruby russet rust sand sea sky slate"
    " snow steel teal"
)
# Birds' eyebrows, which the tagger takes for adjectives.
EYEBROWS = _set("superciliary superciliaries supercilliary supercillary supercilary supercilium")
# The whole: in `white belly bird` the belly is white.
WHOLE = _set("bird birds duck ducks gull gulls")
COPULAS = _set("is are was were be been being 's s ’s look looks appear appears seem seems")
RELATIVE = _set("that which thats")
CONJUNCTIONS = _set("and or but yet & n nd ans , / plus")
# Tagged as adjectives, they point or count.
POINTERS = _set(
    "such other many several own same few much more most less least certain various multiple another all some both"
)
# `swept back` is an adverb.
BACKWARDS = _set("swept pulled laid folded going goes leading swooping slicked brushed combed")
PLACES = _set("of on in at around near over under from along above below across through to by behind between")


def _is_plural(lower: str) -> bool:
    return lower in ("feet", "tarsi") or lower.endswith("s") and not lower.endswith(("ss", "us"))


def _token_part(token: Token) -> Part:
    """The part of a word that no lexicon lists, by its tags."""
    lower, tag = token.lower_, token.tag_
    if lower in TRANSPARENT or lower in POINTERS or token.text == "-":
        return Part.MODIFIER
    if lower in CONJUNCTIONS:
        return Part.AND
    if lower in RELATIVE and tag != "DT":
        return Part.THAT
    if lower in COPULAS and tag.startswith("VB"):
        return Part.BE
    if lower in EYEBROWS:
        return Part.NOUN
    if tag.startswith("JJ"):
        return Part.ADJECTIVE
    if tag.startswith("NN"):
        return Part.NOUN
    if tag.startswith("RB") or tag in ("WRB", "RP") or lower in ("down", "up", "downward", "upward"):
        return Part.MODIFIER
    if tag in ("DT", "PRP$", "CD", "POS", "PDT", "WP$"):
        return Part.START
    if lower in PLACES:
        return Part.PLACE
    return Part.OTHER


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
        self.lemmatizer = nlp.get_pipe("lemmatizer") if "lemmatizer" in nlp.component_names else None
        self.lemmas: dict[str, str] = {}
        # A lemmatizer that is a network needs the whole sentence: its words stay as they stand.
        known = hasattr(self.lemmatizer, "lemmatize") and "attribute_ruler" in nlp.component_names
        self.asked = [nlp.get_pipe(name) for name in ASKED] if known else []
        self.labels: dict[tuple[str, str], str] = {}
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
            length, group = 1, ""
            match = self._match(lowers, i)
            if match:
                length, (part, canonical, group) = match
                if lowers[i] == "back" and not token.tag_.startswith("NN") and i and lowers[i - 1] in BACKWARDS:
                    part = Part.MODIFIER
            else:
                part = self._part(doc, i)
                canonical = self._fold(token, part)
            last = doc[i + length - 1]
            end = last.idx + len(last)
            possessed = bool(group) and part is Part.NOUN and lowers[i].endswith("ed") and not canonical.endswith("ed")
            plural = _is_plural(last.lower_)
            result.append(Word(part, canonical, group, token.idx, end, i, i + length - 1, lowers[i], plural, possessed))
            i += length
        return result

    def _part(self, doc: Doc, i: int) -> Part:
        """The part of a token that no lexicon lists, by its tags and its neighbours."""
        token = doc[i]
        part = _token_part(token)
        following = doc[i + 1] if i + 1 < len(doc) else None
        if following is None:
            return Part.ADJECTIVE if part is Part.OTHER and self._is_participle(token, None) else part
        entry = self.entries.get(following.lower_)
        if token.lower_ == "that" and following.lower_ in COPULAS and i:
            before = self.entries.get(doc[i - 1].lower_)
            if before and before.part is Part.NOUN:
                return Part.THAT
        if part is Part.OTHER and self._is_participle(token, following):
            return Part.ADJECTIVE
        if part is Part.NOUN and following.lower_ in TRANSPARENT:
            return Part.MODIFIER  # `cone shaped`
        if part is Part.NOUN and entry and entry.part is Part.ADJECTIVE and token.lower_ not in WHOLE:
            # `mustard yellow breast`
            return Part.MODIFIER if token.lower_ in SHADES or token.head.i == i + 1 else part
        if part is Part.PLACE and token.lower_ == "under" and i and entry and entry.part is Part.NOUN:
            before = self.entries.get(doc[i - 1].lower_)
            return Part.MODIFIER if before and before.part is Part.ADJECTIVE else part
        return part

    def _is_participle(self, token: Token, following: Token | None) -> bool:
        """Whether a verb's form stands where an adjective stands: `a pointed bill`, `is pointed`."""
        if token.tag_ not in ("VBN", "VBD", "VBG"):
            return False
        if token.dep_ in ("amod", "acomp"):
            return True
        if token.tag_ == "VBG":
            return False
        if any(child.dep_ == "auxpass" for child in token.children):
            return not any(child.dep_ in ("agent", "prep") for child in token.children)
        if token.i == 0 or following is None:
            return False
        before = token.doc[token.i - 1]
        inside = before.tag_ in ("JJ", "DT", "CC", "RB", "CD") or self._is_adjective(before)
        return inside and (following.tag_.startswith(("NN", "JJ")) or following.lower_ in self.entries)

    def _is_adjective(self, token: Token) -> bool:
        entry = self.entries.get(token.lower_)
        return entry is not None and entry.part is Part.ADJECTIVE

    def _fold(self, token: Token, part: Part) -> str:
        """A word that no lexicon lists: a noun by its lemma, an adjective as it stands.

        `longer` stays apart from `long` and `spotted` from `spot`: they say something else.
        """
        if part is not Part.NOUN:
            return token.lower_
        lemma = self._lemma(token)
        entry = self.entries.get(lemma)
        if entry is None:
            return lemma
        return entry.canonical if entry.part is Part.NOUN else token.lower_

    def _lemma(self, token: Token) -> str:
        """A noun's lemma by the pipeline's lemmatizer, which needs only to see the plurals."""
        lower = token.lower_
        if self.lemmatizer is None or token.tag_ not in ("NNS", "NNPS"):
            return lower
        if lower not in self.lemmas:
            token.pos_ = "NOUN"
            self.lemmas[lower] = self.lemmatizer.lemmatize(token)[0].lower()
        return self.lemmas[lower]

    def label(self, word: Word, token: Token) -> str:
        """A word as a node of the tree; empty for one without a letter or a digit.

        Nouns and adjectives are what they are in pairs; others are lemmas, asked once for each form and tag.
        """
        if not word.lower.isalnum() and not any(map(str.isalnum, word.lower)):
            return ""
        if word.group or word.part in (Part.ADJECTIVE, Part.NOUN):
            return word.canonical
        asked = (word.lower, token.tag_)
        if asked not in self.labels:
            self.labels[asked] = self._ask(token)
        return self.labels[asked]

    def _ask(self, token: Token) -> str:
        """The lemma of a token by its form and tag alone."""
        from spacy.tokens import Doc

        doc = Doc(token.vocab, words=[token.lower_])
        doc[0].tag_ = token.tag_
        for component in self.asked:
            doc = component(doc)
        return doc[0].lemma_.lower() or token.lower_


def spans(words: Iterable[Word]) -> dict[int, int]:
    """From a token's index to the index of the word that holds it."""
    return {i: n for n, word in enumerate(words) for i in range(word.first, word.last + 1)}
