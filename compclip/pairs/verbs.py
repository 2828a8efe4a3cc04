"""Find the verbs that the tagger takes for nouns.

A caption is a phrase more often than a sentence, and the small pipelines often read a verb after a
noun as one more noun: `leaps` in `a black dog leaps`, `playing` in `a green shirt playing
football`. Often the parse contradicts itself: an article for one thing before a plural, or a plural
that modifies a noun. Otherwise, the words beside the verb and the lists of
``lexicons/grammar.yaml`` decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from compclip.text.grammar import WORDS

if TYPE_CHECKING:
    from spacy.tokens import Token

# After a noun, these show that a word in -s takes an object: `kicks a ball`, `wags its tail`.
OBJECT_TAGS = frozenset(("DT", "PRP$", "PRP"))
# Tags of the words that may follow inside a noun phrase.
PHRASE_TAGS = ("NN", "JJ", "VBN", "CD")


class Dictionary:
    """Words by their part of speech, as the pipeline's lemmatizer has them; empty if it has none.

    Args:
        lookups: tables of a rule-based lemmatizer.
    """

    def __init__(self, lookups: Any) -> None:
        index: Mapping[str, Any] = {}
        if lookups is not None:
            index = lookups.get_table("lemma_index", {})
        self.nouns = frozenset(index.get("noun", ()))
        self.verbs = frozenset(index.get("verb", ()))
        self.adjectives = frozenset(index.get("adj", ()))


def _stems(lower: str) -> list[str]:
    """Return the possible base forms of a verb in -s or -ing: `fly` of `flies`, `jog` of
    `jogging`.
    """
    if lower.endswith("ing"):
        stem = lower.removesuffix("ing")
        undoubled = stem[:-1] if stem[-1:] == stem[-2:-1] else stem
        return [stem, f"{stem}e", undoubled]
    if lower.endswith("s"):
        in_y = lower.removesuffix("ies") + "y"
        return [lower[:-1], lower.removesuffix("es"), in_y]
    return [lower]


class MisreadVerbs:
    """Whether a token that is tagged as a noun is a verb.

    Args:
        dictionary: words by their part of speech.
        is_adjective: whether a lexicon of adjectives (True) or of nouns (False) lists a token;
            None: neither does.
    """

    def __init__(
        self, dictionary: Dictionary, is_adjective: Callable[[Token | None], bool | None]
    ) -> None:
        self.dictionary = dictionary
        self.is_adjective = is_adjective

    def __call__(self, token: Token) -> bool:
        """Return whether the tagger takes this verb for a noun, or for a participle that modifies a
        noun.
        """
        lower = token.lower_
        if token.i == 0 or not self.dictionary.verbs or lower in WORDS.transparent:
            return False
        # Which base form is right is open, so one that is known suffices.
        stems = _stems(lower)
        is_action = not WORDS.actions.isdisjoint(stems)
        if not is_action and self.dictionary.verbs.isdisjoint(stems):
            return False
        if lower.endswith("ing"):
            # `blue writing on it`, but `writing a letter`
            is_thing = lower in WORDS.things_in_ing and _following_tag(token) not in OBJECT_TAGS
            return not is_thing and self._is_participle(token)
        if not token.tag_.startswith("NN"):
            return False
        # `protrude`
        if self._is_no_noun(token, stems) or self._continues_verb(token):
            return True
        if token.tag_ == "NNS":
            return self._is_third_person(token, is_action)
        return token.tag_ == "NN" and is_action and self._is_plural(token)

    def _is_no_noun(self, token: Token, stems: list[str]) -> bool:
        """Return whether the dictionary knows a word as a verb alone: `protrude`."""
        lower = token.lower_
        if lower in self.dictionary.adjectives:
            return False
        if not self.dictionary.nouns.isdisjoint([lower, *stems]):
            return False
        return not _following_tag(token).startswith(PHRASE_TAGS)

    def _continues_verb(self, token: Token) -> bool:
        """Return whether a word is coordinated with such a verb: `waits` in `the bus stops and
        waits`.
        """
        head = token.head
        if token.dep_ != "conj" or head.i >= token.i:
            return False
        return head.tag_ == token.tag_ and self(head)

    def _is_third_person(self, token: Token, is_action: bool) -> bool:
        """Return whether a word in -s is a verb: `leaps` in `a black dog leaps`."""
        openers = [child for child in token.children if child.dep_ in ("det", "nummod", "amod")]
        determiners = {child.lower_ for child in openers}
        if not determiners.isdisjoint(WORDS.many):
            return False  # `two dress shoes`
        if not WORDS.carriers.isdisjoint(_stems(token.lower_)):
            return False  # `wing tips`
        if token.dep_ == "compound":
            return False  # `doctors` in `an old doctors office`
        if self._follows_bare_color(token):
            return is_action or _goes_on(token)
        if _is_plural_noun(token.nbor(-1)):
            return True  # `black boots smokes`
        # An article for one thing, which the parser attaches to a plural: the noun before is its
        # noun.
        has_single = not determiners.isdisjoint(WORDS.single)
        is_single = has_single and token.lower_ not in WORDS.singulars_in_s
        if not self._follows_noun(token, is_single):
            return False
        return is_single or is_action or _following_tag(token) in OBJECT_TAGS

    def _is_plural(self, token: Token) -> bool:
        """Return whether a word is the verb of a plural: `race` in `two black dogs race`."""
        previous = token.nbor(-1)
        modifies_token = previous.head.i == token.i
        # `two black dogs race`: a plural hardly modifies a noun.
        if _is_plural_noun(previous) and modifies_token:
            return True
        if _following_tag(token).startswith(PHRASE_TAGS):
            return False
        if self._follows_bare_color(token):
            return True
        # `a black dog and a brown dog play in the yard`
        if token.dep_ != "conj" or previous.tag_ != "NN" or not modifies_token:
            return False
        return _following_tag(token) in ("IN", "RB", "RP", "TO", *OBJECT_TAGS)

    def _is_participle(self, token: Token) -> bool:
        """Return whether a word in -ing begins a clause: `jumping` in `a red cap jumping off a
        dock`.
        """
        if token.tag_ not in ("NN", "VBG") or token.nbor(-1).tag_ == "HYPH":
            return False
        follows_noun = self._follows_noun(token, token.tag_ == "NN")
        # `a running dog`
        if token.tag_ == "VBG" and not follows_noun:
            return False
        if _following_tag(token).startswith(PHRASE_TAGS):
            # `running shoes`, `black cutting boards`; but `a white apron cooking dinner`.
            is_clause = follows_noun or self._follows_bare_color(token)
            return is_clause and token.lower_ not in WORDS.purposes
        previous = token.nbor(-1)
        if follows_noun or previous.tag_.startswith("JJ"):
            return True
        return self.is_adjective(previous) is True

    def _follows_noun(self, token: Token, is_sure: bool) -> bool:
        """Return whether the word before is a noun, of one thing if ``token`` ends in -s.

        After an adjective, so is a word like `top`, whatever its tag, if ``token`` is hardly its
        noun (``is_sure``).
        """
        previous = token.nbor(-1)
        is_adjective = self.is_adjective(previous)
        if is_adjective is not None:
            return not is_adjective
        if previous.tag_.startswith("NN"):
            return token.tag_ != "NNS" or previous.tag_ != "NNS"
        if previous.tag_ != "JJ" or previous.lower_ not in self.dictionary.nouns:
            return False
        # The dictionary has it only as a noun, such as `top`.
        if previous.lower_ not in self.dictionary.adjectives:
            return True
        if not is_sure or previous.i == 0:
            return False
        return self.is_adjective(previous.nbor(-1)) is True

    def _follows_bare_color(self, token: Token) -> bool:
        """Return whether adjectives without a noun stand before: `in black and white` before
        `sits`.
        """
        start = token.i - 1
        if not self._is_color(token.doc[start]):
            return False
        while start > 0 and self._is_in_colors(token.doc[start]):
            start -= 1
        # `a man in black and white sits`
        return token.doc[start].lower_ in WORDS.wearing

    def _is_in_colors(self, token: Token) -> bool:
        return self._is_color(token) or token.lower_ in WORDS.between_colors

    def _is_color(self, token: Token) -> bool:
        if self.is_adjective(token) is True:
            return True
        return token.lower_ in WORDS.unlisted_colors or token.lower_ in WORDS.metals


def _is_plural_noun(token: Token) -> bool:
    """Return whether a token is a noun for several things, which hardly modifies a noun after
    it.
    """
    return token.tag_ == "NNS" and token.lower_ not in WORDS.plural_modifiers


def _goes_on(token: Token) -> bool:
    """Return whether a word after a bare color hardly is a garment: `in red bikes down a hill`, `in
    blue checks a`.
    """
    if token.i + 1 == len(token.doc):
        return False
    following = token.nbor()
    return following.tag_ == "DT" or following.lower_ in WORDS.motions


def _following_tag(token: Token) -> str:
    """Return the tag of the next word, "" at the end."""
    return token.nbor().tag_ if token.i + 1 < len(token.doc) else ""
