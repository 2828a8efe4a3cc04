"""The words of a parsed caption, each with its role in a pair.

Lexicons override the tagger, so it does not matter that it tags a listed `orange` as a noun, or
`back` as an adverb.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from compclip.core.normal import normalize
from compclip.pairs.verbs import OBJECT_TAGS, Dictionary, MisreadVerbs
from compclip.text.grammar import WORDS
from compclip.text.language import ON_REQUEST
from compclip.text.lexicon import Lexicon, require_distinct, surface_forms

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token


class Role(Enum):
    """The role of a word in a noun phrase or a predicate."""

    ADJECTIVE = "adjective"
    NOUN = "noun"
    AND = "conjunction"  # and, or, but, a comma
    MODIFIER = "modifier"  # adverbs and `colored`: inside a phrase, not in a pair
    BE = "copula"
    THAT = "relative pronoun"
    START = "determiner"  # begins a phrase: a, the, its
    PLACE = "preposition"  # separates nouns
    OTHER = "other"  # ends a phrase: prepositions, verbs


@dataclass(slots=True)  # not frozen, which would take three times as long
class Word:
    """A word, or a form of several tokens (`eye ring`)."""

    part: Role
    canonical: str
    group: str  # the lexicon that lists it, or ""
    start: int  # characters of the text, end exclusive
    end: int
    first: int  # tokens of the parsed caption, both inclusive
    last: int
    lower: str  # the first token
    plural: bool  # by its ending
    possessed: bool  # a noun's participle: `headed` in `red headed bird`


class LexiconEntry(NamedTuple):
    """The entry of a form in a lexicon."""

    part: Role
    canonical: str
    group: str


# Tags of words that end the phrase of the noun before them.
AFTER_NOUN_TAGS = frozenset(("IN", "VBZ", "VBP", "VBD", "VBG", "WDT", ".", ","))
# Group of compounds that are not in the noun lexicon.
COMPOUND = "compound"
# Group of the forms of parts that are not in the noun lexicon: `haired`.
PART = "part"


def _token_part(token: Token) -> Role:
    """Return the role of an unlisted word, by its tags."""
    lower, tag = token.lower_, token.tag_
    if lower in WORDS.transparent or lower in WORDS.pointers or token.text == "-":
        return Role.MODIFIER
    if lower in WORDS.conjunctions:
        return Role.AND
    if lower in WORDS.relatives_and_typos and tag != "DT":
        return Role.THAT
    if lower in WORDS.copulas and tag.startswith("VB"):
        return Role.BE
    if lower in WORDS.articles:
        return Role.START
    if lower in WORDS.eyebrows or tag.startswith("NN"):
        return Role.NOUN
    if tag.startswith("JJ"):
        return Role.ADJECTIVE
    if tag.startswith("RB") or tag in ("WRB", "RP") or lower in WORDS.verticals:
        return Role.MODIFIER
    if tag in ("DT", "PRP$", "CD", "POS", "PDT", "WP$"):
        return Role.START
    return Role.PLACE if lower in WORDS.phrase_places else Role.OTHER


def _raising_role(doc: Doc, i: int) -> Role | None:
    """Return the role of a token in `appears to be`, a copula of three words, or None for other
    tokens.
    """
    for place, role in ((0, Role.BE), (1, Role.MODIFIER), (2, Role.MODIFIER)):
        first = i - place
        lowers = [token.lower_ for token in doc[max(first, 0) : first + 3]]
        if len(lowers) == 3 and lowers[0] in WORDS.raising and lowers[1:] == ["to", "be"]:
            return role
    return None


class Vocabulary:
    """The lexicons, ready to be matched against the tokens of pipeline ``nlp``.

    Without a noun lexicon, any noun counts, by its lemma. Compounds are nouns with any noun
    lexicon.
    """

    def __init__(
        self,
        nlp: Language,
        adjectives: Sequence[Lexicon],
        nouns: Lexicon | None,
        compounds: Lexicon,
    ) -> None:
        require_distinct([*adjectives, nouns] if nouns else adjectives)
        self.lemmatizer: Any = (
            nlp.get_pipe("lemmatizer") if "lemmatizer" in nlp.component_names else None
        )
        self.dictionary = Dictionary(getattr(self.lemmatizer, "lookups", None))
        self.is_misread = MisreadVerbs(self.dictionary, self._is_adjective)
        self.lemmas: dict[str, str] = {}
        # Words are lemmatized only by a rule-based lemmatizer: a neural one needs the whole
        # sentence.
        is_rule_based = (
            hasattr(self.lemmatizer, "lemmatize") and "attribute_ruler" in nlp.component_names
        )
        self.on_request = [nlp.get_pipe(name) for name in ON_REQUEST] if is_rule_based else []
        self.labels: dict[tuple[str, str], str] = {}
        self.entries: dict[tuple[str, ...], LexiconEntry] = {}
        listed = nouns or Lexicon("nouns", {})
        unlisted = Lexicon(COMPOUND, surface_forms(listed.forms, compounds))
        named = {form: listed.forms.get(noun, noun) for form, (noun,) in WORDS.part_forms.items()}
        possessed = Lexicon(PART, named)
        # A later lexicon replaces the forms of those before.
        lexicons = [(unlisted, Role.NOUN), (possessed, Role.NOUN)]
        lexicons += [(lexicon, Role.ADJECTIVE) for lexicon in adjectives]
        lexicons.append((listed, Role.NOUN))
        self.forms: dict[Role, dict[str, str]] = {Role.ADJECTIVE: {}, Role.NOUN: {}}
        self.longest: dict[
            str, int
        ] = {}  # the number of tokens of the longest form, by its first token
        for lexicon, part in lexicons:
            for form, canonical in lexicon.forms.items():
                self.forms[part][form] = canonical
                tokens = tuple(token.lower_ for token in nlp.make_doc(normalize(form).text))
                self.entries[tokens] = LexiconEntry(part, canonical, lexicon.name)
                self.longest[tokens[0]] = max(self.longest.get(tokens[0], 0), len(tokens))

    def _match(self, lowers: list[str], i: int) -> tuple[int, LexiconEntry] | None:
        """Return the number of tokens and the entry of the longest form that begins at token
        ``i``.
        """
        for length in range(min(self.longest.get(lowers[i], 0), len(lowers) - i), 0, -1):
            if entry := self.entries.get(tuple(lowers[i : i + length])):
                return length, entry
        return None

    def _ends_in_verb(self, doc: Doc, i: int, length: int, entry: LexiconEntry) -> bool:
        """Return whether what looks like a compound at token ``i`` is a noun and its verb: `a red
        bus stops`.
        """
        last = doc[i + length - 1]
        return (
            length > 1 and entry.group == COMPOUND and last.tag_ == "NNS" and self.is_misread(last)
        )

    def words(self, doc: Doc) -> list[Word]:
        lowers = [token.lower_ for token in doc]
        result: list[Word] = []
        i = 0
        while i < len(doc):
            token = doc[i]
            length, group = 1, ""
            match = self._match(lowers, i)
            if match and not self._ends_in_verb(doc, i, *match):
                length, (part, canonical, group) = match
                if (
                    lowers[i] == "back"
                    and not token.tag_.startswith("NN")
                    and i
                    and lowers[i - 1] in WORDS.backwards
                ):
                    part = Role.MODIFIER
                elif lowers[i] in WORDS.fruits and self._is_fruit(doc, i):
                    part, group = Role.NOUN, ""
            else:
                if lowers[i + 1 : i + 2] == ["-"] and self._is_hyphenated(doc[i : i + 3]):
                    length = 3
                part = Role.NOUN if length > 1 else self._part(doc, i)
                canonical = "".join(lowers[i : i + length - 1]) + self._fold(
                    doc[i + length - 1], part
                )
            last = doc[i + length - 1]
            end = last.idx + len(last)
            in_ed = (
                bool(group)
                and part is Role.NOUN
                and lowers[i].endswith("ed")
                and not canonical.endswith("ed")
            )
            possessed = in_ed or group == PART
            has_s = last.lower_.endswith("s") and not last.lower_.endswith(("ss", "us"))
            plural = has_s or last.lower_ in WORDS.plurals_without_s
            result.append(
                Word(
                    part,
                    canonical,
                    group,
                    token.idx,
                    end,
                    i,
                    i + length - 1,
                    lowers[i],
                    plural,
                    possessed,
                )
            )
            i += length
        return result

    def _is_hyphenated(self, tokens: Span) -> bool:
        """Return whether three tokens with a hyphen in the middle are a noun like `x-ray`, split by
        the pipeline.
        """
        if len(tokens) < 3 or any(token.whitespace_ for token in tokens[:2]):
            return False
        return all(
            token.tag_.startswith("NN") and not self._listed(token)
            for token in (tokens[0], tokens[2])
        )

    def _listed(self, token: Token | None) -> Role | None:
        """Return the role of a token that a lexicon lists, or None."""
        return (
            entry.part
            if token is not None and (entry := self.entries.get((token.lower_,)))
            else None
        )

    def _is_adjective(self, token: Token | None) -> bool | None:
        """Return whether a lexicon lists a token as an adjective, False if as a noun, None if none
        lists it.
        """
        role = self._listed(token)
        return None if role is None else role is Role.ADJECTIVE

    def _part(self, doc: Doc, i: int) -> Role:
        """Return the role of an unlisted token, by its tags and its neighbors."""
        token = doc[i]
        before, following = doc[i - 1] if i else None, doc[i + 1] if i + 1 < len(doc) else None
        part = _token_part(token)
        if token.lower_ in WORDS.plurals_like_verbs:
            return Role.NOUN
        if self._is_verb(token, following) or self._is_look(token):
            return Role.OTHER
        if self._is_covering(doc, i):
            return Role.MODIFIER
        if self._is_painted(doc, i):
            # A copula, unless it follows one: `a wall painted white`, `the wall is painted white`.
            return Role.BE if doc[i - 1].tag_.startswith("NN") else Role.MODIFIER
        if (
            token.lower_ in WORDS.has
            and following is not None
            and self._is_becoming(doc, following.i)
        ):
            return Role.MODIFIER  # `the leaf has turned red`
        if self._is_becoming(doc, i):
            return Role.MODIFIER if before is not None and before.lower_ in WORDS.be else Role.BE
        raising = _raising_role(doc, i)
        if raising is not None:
            return raising
        is_before_copula = following is not None and following.lower_ in WORDS.copulas
        if token.lower_ == "that" and is_before_copula and self._listed(before) is Role.NOUN:
            return Role.THAT  # `wings that are`
        if part is Role.OTHER and self._is_participle(token, following):
            return Role.ADJECTIVE
        if (
            part is Role.OTHER
            and token.lower_ in WORDS.things_in_ing
            and self._listed(before) is Role.ADJECTIVE
        ):
            takes_object = following is not None and following.tag_ in OBJECT_TAGS
            return Role.OTHER if takes_object else Role.NOUN  # `blue writing on it`
        if part is Role.ADJECTIVE and self._is_noun(token, following):
            return Role.NOUN
        if part is Role.NOUN and self._is_modifier(token, following):
            return Role.MODIFIER
        if (
            part is Role.NOUN
            and token.tag_ == "NNS"
            and any(child.dep_ == "nsubj" for child in token.children)
        ):
            return Role.OTHER  # a verb: `a red kite flies`
        is_between = self._listed(before) is Role.ADJECTIVE and self._listed(following) is Role.NOUN
        if token.lower_ == "under" and is_between:
            return Role.MODIFIER  # `white under tail`
        return part

    def _is_fruit(self, doc: Doc, i: int) -> bool:
        """Return whether a color is the thing of that name: `an orange and a pear`, not `an orange
        and white cat`.
        """
        if i == 0 or doc[i - 1].lower_ not in WORDS.before_fruits:
            return False
        tags = [token.tag_ for token in doc[i + 1 : i + 4]]
        if not tags:
            return True
        if self._listed(doc[i + 1]) is not None:
            return False
        if tags[0] != "CC":
            return tags[0] in AFTER_NOUN_TAGS
        # In `an orange and cream cat` it is a color.
        return (
            tags[1:2] == ["DT"]
            or len(tags) > 1
            and tags[1] in ("NN", "NNS")
            and tags[2:3] not in (["NN"], ["NNS"])
        )

    def _is_covering(self, doc: Doc, i: int) -> bool:
        """Return whether a noun and the participle at ``i`` make one adjective, before which a size
        stands.

        The hill is large in `a large snow covered hill`, but the grass is green in `a green grass
        covered hill`.
        """
        if i < 2 or i + 1 >= len(doc) or doc[i].lower_ not in WORDS.covering:
            return False
        entry = self.entries.get((doc[i - 2].lower_,))
        is_size = entry is not None and entry.canonical in WORDS.stacking
        return (
            is_size
            and doc[i - 1].tag_.startswith("NN")
            and doc[i + 1].tag_.startswith(("NN", "JJ"))
        )

    def _is_painted(self, doc: Doc, i: int) -> bool:
        """Return whether the participle at ``i`` is followed by a color: `painted white`, `painted
        a light blue`.
        """
        return (
            doc[i].lower_ in WORDS.painted
            and doc[i].tag_ in ("VBN", "VBD")
            and self._precedes_adjective(doc, i)
        )

    def _is_becoming(self, doc: Doc, i: int) -> bool:
        """Return whether the verb at ``i`` says what becomes or remains so: `turned red`, `stays a
        bright red`.
        """
        return (
            doc[i].lower_ in WORDS.becoming
            and doc[i].tag_.startswith("VB")
            and self._precedes_adjective(doc, i)
        )

    def _precedes_adjective(self, doc: Doc, i: int) -> bool:
        """Return whether a listed adjective follows the token at ``i``, perhaps after an article
        and unlisted words.
        """
        after = i + 1
        while (
            after < len(doc)
            and self._listed(doc[after]) is None
            and doc[after].tag_ in ("DT", "RB", "JJ")
        ):
            after += 1
        return after < len(doc) and self._listed(doc[after]) is Role.ADJECTIVE

    def _is_look(self, token: Token) -> bool:
        """Return whether a transparent word is a verb: `looking at a map`, unlike `funny looking
        bird`.
        """
        if (
            token.tag_ != "VBG"
            or token.lower_ not in WORDS.transparent
            or token.i + 1 == len(token.doc)
        ):
            return False
        return token.nbor().tag_ in ("IN", "RP", "TO", "DT", "PRP$")

    def _is_verb(self, token: Token, following: Token | None) -> bool:
        """Return whether a token is a verb, or half of one (`roller skating`), that is tagged as a
        noun.
        """
        if self.is_misread(token):
            return True
        if token.lower_ not in WORDS.verb_companions or token.i == 0 or following is None:
            return False
        return following.tag_.startswith("NN") and self.is_misread(following)

    def _is_noun(self, token: Token, following: Token | None) -> bool:
        """Return whether a word that is tagged as an adjective is a noun: `top` in `a blue top
        bowling`.
        """
        if token.tag_ != "JJ" or token.lower_ not in self.dictionary.nouns:
            return False
        return (
            following is not None and self._listed(following) is None and self.is_misread(following)
        )

    def _is_modifier(self, token: Token, following: Token | None) -> bool:
        """Return whether a noun only modifies the word after it: `cone shaped`, `mustard yellow
        breast`.
        """
        if following is None:
            return False
        if following.lower_ in WORDS.transparent:
            return not self._is_look(following)
        if self._is_covering(token.doc, following.i):
            return True
        if self._listed(following) is not Role.ADJECTIVE or token.lower_ in WORDS.birds:
            return False
        return token.lower_ in WORDS.shading_nouns or token.head.i == following.i

    def _is_participle(self, token: Token, following: Token | None) -> bool:
        """Return whether a verb form is used as an adjective: `a pointed bill`, `is pointed`."""
        if token.tag_ not in ("VBN", "VBD", "VBG"):
            return False
        if token.dep_ in ("amod", "acomp"):
            return True
        if token.tag_ == "VBG":
            return False
        if "auxpass" in (dependents := {child.dep_ for child in token.children}):
            return dependents.isdisjoint(("agent", "prep"))
        if token.i == 0 or following is None:
            return False
        before = token.doc[token.i - 1]
        is_inside = (
            before.tag_ in ("JJ", "DT", "CC", "RB", "CD") or self._listed(before) is Role.ADJECTIVE
        )
        return is_inside and (
            following.tag_.startswith(("NN", "JJ")) or (following.lower_,) in self.entries
        )

    def _fold(self, token: Token, part: Role) -> str:
        """Return the canonical form of an unlisted word: a noun's lemma, else the word itself.

        `longer` is not folded to `long`, nor `spotted` to `spot`: their meaning differs.
        """
        if part is not Role.NOUN:
            return token.lower_
        lemma = self._lemma(token)
        entry = self.entries.get((lemma,), LexiconEntry(Role.NOUN, lemma, ""))
        return entry.canonical if entry.part is Role.NOUN else token.lower_

    def _lemma(self, token: Token) -> str:
        """Return a noun's lemma; only plurals need the pipeline's lemmatizer."""
        lower = token.lower_
        if (
            self.lemmatizer is None
            or token.tag_ not in ("NNS", "NNPS")
            or lower in WORDS.singulars_in_men
        ):
            return lower
        if lower not in self.lemmas:
            token.pos_ = "NOUN"
            self.lemmas[lower] = self.lemmatizer.lemmatize(token)[0].lower()
        return self.lemmas[lower]

    def label(self, word: Word, token: Token) -> str:
        """Return a word's label in the tree, "" for words without a letter or a digit.

        Nouns and adjectives have their canonical form in pairs; others have their lemma by form and
        tag.
        """
        if not any(map(str.isalnum, word.lower)):
            return ""
        if word.group or word.part in (Role.ADJECTIVE, Role.NOUN):
            return word.canonical
        form = (word.lower, token.tag_)
        if form not in self.labels:
            self.labels[form] = self._lemma_by_tag(token)
        return self.labels[form]

    def _lemma_by_tag(self, token: Token) -> str:
        """Return the lemma of a token, from only its form and tag."""
        from spacy.tokens import Doc

        doc = Doc(token.vocab, words=[token.lower_])
        doc[0].tag_ = token.tag_
        for component in self.on_request:
            doc = component(doc)
        return doc[0].lemma_.lower() or token.lower_


def spans(words: Iterable[Word]) -> dict[int, int]:
    """Return the index of each token's word, by the token's index."""
    return {i: n for n, word in enumerate(words) for i in range(word.first, word.last + 1)}
