"""The words of a parsed caption, each with its role in a pair.

Lexicons override the tagger, so it does not matter that it tags a listed `orange` as a noun, or
`back` as an adverb.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from compclip.core.reading.normal import normalize
from compclip.pairs.verbs import OBJECT_TAGS, Dictionary, MisreadVerbs
from compclip.text.grammar import WORDS
from compclip.text.language import ON_REQUEST
from compclip.text.lexicon import Lexicon, require_distinct, surface_forms

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Token


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
    lower = token.lower_
    tag = token.tag_
    if lower in WORDS.transparent or lower in WORDS.pointers or token.text == "-":
        return Role.MODIFIER
    if lower in WORDS.conjunctions:
        return Role.AND
    # As a determiner, `that` begins a phrase: `that bird`.
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


def _raising_role(lowers: Sequence[str], i: int) -> Role | None:
    """Return the role of a token in `appears to be`, a copula of three words, or None for other
    tokens.
    """
    for first, role in ((i, Role.BE), (i - 1, Role.MODIFIER), (i - 2, Role.MODIFIER)):
        is_raising = first >= 0 and lowers[first] in WORDS.raising
        if is_raising and lowers[first + 1 : first + 3] == ["to", "be"]:
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
        self.lemmatizer: Any = None
        if "lemmatizer" in nlp.component_names:
            self.lemmatizer = nlp.get_pipe("lemmatizer")
        self.dictionary = Dictionary(getattr(self.lemmatizer, "lookups", None))
        self.is_misread = MisreadVerbs(self.dictionary, self._is_adjective)
        self.lemmas: dict[str, str] = {}
        # Words are lemmatized only by a rule-based lemmatizer: a neural one needs the whole
        # sentence.
        self.on_request = []
        if hasattr(self.lemmatizer, "lemmatize") and "attribute_ruler" in nlp.component_names:
            self.on_request = [nlp.get_pipe(name) for name in ON_REQUEST]
        self.labels: dict[tuple[str, str], str] = {}
        self.entries: dict[tuple[str, ...], LexiconEntry] = {}
        self.forms: dict[Role, dict[str, str]] = {Role.ADJECTIVE: {}, Role.NOUN: {}}
        # The number of tokens of the longest form, by its first token.
        self.longest: dict[str, int] = {}
        listed = nouns or Lexicon("nouns", {})
        # Forms of parts in -ed, such as `haired`.
        part_nouns = {form: noun for form, (noun,) in WORDS.part_forms.items()}
        possessed = {form: listed.forms.get(noun, noun) for form, noun in part_nouns.items()}
        # A later lexicon replaces the forms of those before.
        self._add(nlp, Lexicon(COMPOUND, surface_forms(listed.forms, compounds)), Role.NOUN)
        self._add(nlp, Lexicon(PART, possessed), Role.NOUN)
        for lexicon in adjectives:
            self._add(nlp, lexicon, Role.ADJECTIVE)
        self._add(nlp, listed, Role.NOUN)

    def _add(self, nlp: Language, lexicon: Lexicon, role: Role) -> None:
        for form, canonical in lexicon.forms.items():
            self.forms[role][form] = canonical
            doc = nlp.make_doc(normalize(form).text)
            tokens = tuple(token.lower_ for token in doc)
            self.entries[tokens] = LexiconEntry(role, canonical, lexicon.name)
            longest = self.longest.get(tokens[0], 0)
            self.longest[tokens[0]] = max(longest, len(tokens))

    def _match(self, lowers: list[str], i: int) -> tuple[int, LexiconEntry] | None:
        """Return the number of tokens and the entry of the longest form that begins at token
        ``i``.
        """
        longest = min(self.longest.get(lowers[i], 0), len(lowers) - i)
        for length in range(longest, 0, -1):
            entry = self.entries.get(tuple(lowers[i : i + length]))
            if entry is not None:
                return length, entry
        return None

    def _ends_in_verb(
        self, tokens: Sequence[Token], i: int, length: int, entry: LexiconEntry
    ) -> bool:
        """Return whether what looks like a compound at token ``i`` is a noun and its verb: `a red
        bus stops`.
        """
        if length == 1 or entry.group != COMPOUND:
            return False
        last = tokens[i + length - 1]
        return last.tag_ == "NNS" and self.is_misread(last)

    def words(self, tokens: Sequence[Token]) -> list[Word]:
        """Return the words of a parsed caption, each with its role."""
        lowers = [token.lower_ for token in tokens]
        words: list[Word] = []
        i = 0
        while i < len(tokens):
            match = self._match(lowers, i)
            if match and not self._ends_in_verb(tokens, i, *match):
                length, entry = match
                entry = self._entry_in_context(tokens, lowers, i, entry)
            else:
                length, entry = self._unlisted(tokens, lowers, i)
            words.append(_word(tokens[i], tokens[i + length - 1], entry))
            i += length
        return words

    def _entry_in_context(
        self, tokens: Sequence[Token], lowers: list[str], i: int, entry: LexiconEntry
    ) -> LexiconEntry:
        """Return the entry of a listed form, unless the words before it show another role."""
        if lowers[i] == "back" and not tokens[i].tag_.startswith("NN"):
            if i and lowers[i - 1] in WORDS.backwards:
                return entry._replace(part=Role.MODIFIER)
        elif lowers[i] in WORDS.fruits and self._is_fruit(tokens, i):
            # The fruit is a noun that no lexicon lists.
            return entry._replace(part=Role.NOUN, group="")
        return entry

    def _unlisted(
        self, tokens: Sequence[Token], lowers: list[str], i: int
    ) -> tuple[int, LexiconEntry]:
        """Return the number of tokens, the role and the canonical form of an unlisted word."""
        if lowers[i + 1 : i + 2] == ["-"] and self._is_hyphenated(tokens[i : i + 3]):
            length = 3
            role = Role.NOUN
        else:
            length = 1
            role = self._part(tokens, lowers, i)
        last = i + length - 1
        # Only the last word of `x-rays` is inflected.
        canonical = "".join(lowers[i:last]) + self._fold(tokens[last], role)
        return length, LexiconEntry(role, canonical, "")

    def _is_hyphenated(self, tokens: Sequence[Token]) -> bool:
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
        if token is None:
            return None
        entry = self.entries.get((token.lower_,))
        return None if entry is None else entry.part

    def _is_adjective(self, token: Token | None) -> bool | None:
        """Return whether a lexicon lists a token as an adjective, False if as a noun, None if none
        lists it.
        """
        role = self._listed(token)
        return None if role is None else role is Role.ADJECTIVE

    def _part(self, tokens: Sequence[Token], lowers: Sequence[str], i: int) -> Role:
        """Return the role of an unlisted token, by its tags and its neighbors."""
        token = tokens[i]
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        # Always nouns, whatever the tag.
        if token.lower_ in WORDS.plurals_like_verbs:
            return Role.NOUN
        if self._is_verb(token, following) or self._is_look(token):
            return Role.OTHER
        if self._is_covering(tokens, i):
            return Role.MODIFIER
        role = self._copula_role(tokens, i) or _raising_role(lowers, i)
        if role is not None:
            return role
        if self._is_antecedent_clause(tokens, i):
            return Role.THAT
        return self._role_by_tag(tokens, i)

    def _role_by_tag(self, tokens: Sequence[Token], i: int) -> Role:
        """Return the role that a token's tag suggests, corrected by its neighbors."""
        token = tokens[i]
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        role = _token_part(token)
        if role is Role.OTHER:
            return self._role_of_other(tokens, i)
        # `top` in `a blue top bowling`
        if role is Role.ADJECTIVE and self._is_noun(token, following):
            return Role.NOUN
        # `cone` in `cone shaped`
        if role is Role.NOUN and self._is_modifier(tokens, i):
            return Role.MODIFIER
        has_subject = any(child.dep_ == "nsubj" for child in token.children)
        if role is Role.NOUN and token.tag_ == "NNS" and has_subject:
            return Role.OTHER  # a verb: `a red kite flies`
        if self._is_under(tokens, i):
            return Role.MODIFIER
        return role

    def _copula_role(self, tokens: Sequence[Token], i: int) -> Role | None:
        """Return the role of a verb whose object is an adjective, None for other tokens."""
        token = tokens[i]
        previous = tokens[i - 1] if i else None
        if self._is_painted(tokens, i):
            # A copula, unless it follows one: `a wall painted white`, `the wall is painted white`.
            return Role.BE if tokens[i - 1].tag_.startswith("NN") else Role.MODIFIER
        precedes_verb = i + 1 < len(tokens) and self._is_becoming(tokens, i + 1)
        if precedes_verb and token.lower_ in WORDS.has:
            return Role.MODIFIER  # `the leaf has turned red`
        # `the leaf turned red`
        if self._is_becoming(tokens, i):
            follows_copula = previous is not None and previous.lower_ in WORDS.be
            if follows_copula:
                return Role.MODIFIER
            return Role.BE
        return None

    def _is_antecedent_clause(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether `that` begins a clause about the noun before it: `wings that are`."""
        if tokens[i].lower_ != "that" or i + 1 == len(tokens) or i == 0:
            return False
        return tokens[i + 1].lower_ in WORDS.copulas and self._listed(tokens[i - 1]) is Role.NOUN

    def _role_of_other(self, tokens: Sequence[Token], i: int) -> Role:
        """Return the role of a token that its tag makes neither a noun nor an adjective."""
        token = tokens[i]
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        # `a pointed bill`
        if self._is_participle(token, following):
            return Role.ADJECTIVE
        follows_adjective = i > 0 and self._listed(tokens[i - 1]) is Role.ADJECTIVE
        if follows_adjective and token.lower_ in WORDS.things_in_ing:
            takes_object = following is not None and following.tag_ in OBJECT_TAGS
            return Role.OTHER if takes_object else Role.NOUN  # `blue writing on it`
        return Role.MODIFIER if self._is_under(tokens, i) else Role.OTHER

    def _is_under(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether `under` is in a phrase: `white under tail`."""
        if tokens[i].lower_ != "under" or i == 0:
            return False
        if i + 1 == len(tokens) or self._listed(tokens[i + 1]) is not Role.NOUN:
            return False
        return self._listed(tokens[i - 1]) is Role.ADJECTIVE

    def _is_fruit(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether a color is the thing of that name: `an orange and a pear`, not `an orange
        and white cat`.
        """
        if i == 0 or tokens[i - 1].lower_ not in WORDS.before_fruits:
            return False
        tags = [token.tag_ for token in tokens[i + 1 : i + 4]]
        if not tags:
            return True
        if self._listed(tokens[i + 1]) is not None:
            return False
        if tags[0] != "CC":
            return tags[0] in AFTER_NOUN_TAGS
        # `an orange and a pear`
        if tags[1:2] == ["DT"]:
            return True
        # In `an orange and cream cat` it is a color.
        is_noun = len(tags) > 1 and tags[1] in ("NN", "NNS")
        return is_noun and tags[2:3] not in (["NN"], ["NNS"])

    def _is_covering(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether a noun and the participle at ``i`` make one adjective, before which a size
        stands.

        The hill is large in `a large snow covered hill`, but the grass is green in `a green grass
        covered hill`.
        """
        if i < 2 or i + 1 >= len(tokens) or tokens[i].lower_ not in WORDS.covering:
            return False
        entry = self.entries.get((tokens[i - 2].lower_,))
        # `large` in `a large snow covered hill`
        if entry is None or entry.canonical not in WORDS.stacking:
            return False
        is_after_noun = tokens[i - 1].tag_.startswith("NN")
        return is_after_noun and tokens[i + 1].tag_.startswith(("NN", "JJ"))

    def _is_painted(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether the participle at ``i`` is followed by a color: `painted white`, `painted
        a light blue`.
        """
        return (
            tokens[i].lower_ in WORDS.painted
            and tokens[i].tag_ in ("VBN", "VBD")
            and self._precedes_adjective(tokens, i)
        )

    def _is_becoming(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether the verb at ``i`` says what becomes or remains so: `turned red`, `stays a
        bright red`.
        """
        return (
            tokens[i].lower_ in WORDS.becoming
            and tokens[i].tag_.startswith("VB")
            and self._precedes_adjective(tokens, i)
        )

    def _precedes_adjective(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether a listed adjective follows the token at ``i``, perhaps after an article
        and unlisted words.
        """
        for token in tokens[i + 1 :]:
            role = self._listed(token)
            if role is not None:
                return role is Role.ADJECTIVE
            # Words such as `a light` in `painted a light blue`.
            if token.tag_ not in ("DT", "RB", "JJ"):
                return False
        return False

    def _is_look(self, token: Token) -> bool:
        """Return whether a transparent word is a verb: `looking at a map`, unlike `funny looking
        bird`.
        """
        if token.tag_ != "VBG" or token.lower_ not in WORDS.transparent:
            return False
        if token.i + 1 == len(token.doc):
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
        # A listed word after it is no misread verb.
        if following is None or self._listed(following) is not None:
            return False
        return self.is_misread(following)

    def _is_modifier(self, tokens: Sequence[Token], i: int) -> bool:
        """Return whether a noun only modifies the word after it: `cone shaped`, `mustard yellow
        breast`.
        """
        if i + 1 == len(tokens):
            return False
        token, following = tokens[i : i + 2]
        if following.lower_ in WORDS.transparent:
            return not self._is_look(following)
        if self._is_covering(tokens, i + 1):
            return True
        if self._listed(following) is not Role.ADJECTIVE or token.lower_ in WORDS.birds:
            return False
        return token.lower_ in WORDS.shading_nouns or token.head.i == following.i

    def _is_participle(self, token: Token, following: Token | None) -> bool:
        """Return whether a verb form is used as an adjective: `a pointed bill`, `is pointed`."""
        if token.tag_ not in ("VBN", "VBD", "VBG"):
            return False
        # The parser sees an adjective.
        if token.dep_ in ("amod", "acomp"):
            return True
        if token.tag_ == "VBG":
            return False
        dependents = {child.dep_ for child in token.children}
        if "auxpass" in dependents:
            # `is pointed`, but not `is held by a man`
            return dependents.isdisjoint(("agent", "prep"))
        if token.i == 0 or following is None:
            return False
        previous = token.doc[token.i - 1]
        is_opener = previous.tag_ in ("JJ", "DT", "CC", "RB", "CD")
        if not is_opener and self._listed(previous) is not Role.ADJECTIVE:
            return False
        # A listed word is a noun or an adjective, whatever its tag.
        is_listed = (following.lower_,) in self.entries
        return is_listed or following.tag_.startswith(("NN", "JJ"))

    def _fold(self, token: Token, role: Role) -> str:
        """Return the canonical form of an unlisted word: a noun's lemma, else the word itself.

        `longer` is not folded to `long`, nor `spotted` to `spot`: their meaning differs.
        """
        if role is not Role.NOUN:
            return token.lower_
        lemma = self._lemma(token)
        entry = self.entries.get((lemma,))
        if entry is None:
            return lemma
        return entry.canonical if entry.part is Role.NOUN else token.lower_

    def _lemma(self, token: Token) -> str:
        """Return a noun's lemma; only plurals need the pipeline's lemmatizer."""
        lower = token.lower_
        is_plural = token.tag_ in ("NNS", "NNPS")
        if self.lemmatizer is None or not is_plural or lower in WORDS.singulars_in_men:
            return lower
        if lower not in self.lemmas:
            token.pos_ = "NOUN"  # the lemmatizer looks at it
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


def _word(first: Token, last: Token, entry: LexiconEntry) -> Word:
    """Return the word from token ``first`` to token ``last``."""
    is_listed_noun = bool(entry.group) and entry.part is Role.NOUN
    # A noun's form in -ed: `headed`, unlike `bed`.
    is_participle = first.lower_.endswith("ed") and not entry.canonical.endswith("ed")
    is_possessed = is_listed_noun and is_participle or entry.group == PART
    return Word(
        part=entry.part,
        canonical=entry.canonical,
        group=entry.group,
        start=first.idx,
        end=last.idx + len(last),
        first=first.i,
        last=last.i,
        lower=first.lower_,
        plural=_is_plural(last.lower_),
        possessed=is_possessed,
    )


def _is_plural(lower: str) -> bool:
    """Return whether a noun is a plural, by its ending."""
    if lower in WORDS.plurals_without_s:
        return True
    return lower.endswith("s") and not lower.endswith(("ss", "us"))


def spans(words: Iterable[Word]) -> dict[int, int]:
    """Return the index of each token's word, by the token's index."""
    word_of_token = {}
    for n, word in enumerate(words):
        for token in range(word.first, word.last + 1):
            word_of_token[token] = n
    return word_of_token
