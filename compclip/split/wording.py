"""Rules on the wording of English captions around an adjective: which words a swap may change.

The rules come from reading swapped captions of real birds. They concern words, not compositions:
for a user's lexicon, the rules for its words apply.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from compclip.core.reading.normal import normalize
from compclip.text.grammar import WORDS

CAPTION_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

# An adjective at most this many words from a word of comparison may be part of the comparison.
REACH = 6


@dataclass(frozen=True)
class Mention:
    """An occurrence of a pair in a caption, with the offsets of both words."""

    adjective: str
    noun: str
    start: int
    end: int
    noun_start: int
    noun_end: int
    relation: str


class CaptionWord(NamedTuple):
    """A word of a caption, in lower case, and its offsets."""

    text: str
    start: int
    end: int


# Several swaps of a caption are tried one after the other.
@lru_cache(maxsize=16)
def located_words(text: str) -> list[CaptionWord]:
    """Return the words of a caption; not to be changed, since calls share them."""
    matches = CAPTION_WORD.finditer(text)
    return [CaptionWord(m.group().lower(), m.start(), m.end()) for m in matches]


@dataclass(frozen=True)
class Wording:
    """The words of a caption."""

    text: str

    @cached_property
    def words(self) -> list[CaptionWord]:
        return located_words(self.text)

    @cached_property
    def lower(self) -> list[str]:
        return [word.text for word in self.words]

    def word_range(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last word of a range of characters; None if it splits a word."""
        words = self.words
        touched = [i for i, word in enumerate(words) if word.end > start and word.start < end]
        # A range of spaces or signs.
        if not touched:
            return None
        first = touched[0]
        last = touched[-1]
        if words[first].start != start or words[last].end != end:
            return None
        return first, last

    def neighbor(self, index: int, step: int) -> str:
        """Return the word next to ``index`` (step -1 or 1), "" if more than spaces, a hyphen or a
        slash is between.
        """
        neighbor = index + step
        if not 0 <= neighbor < len(self.words):
            return ""
        left, right = sorted((index, neighbor))
        gap = self.text[self.words[left].end : self.words[right].start]
        # `red, blue` are not side by side, `red-blue` and `red/blue` are.
        if gap.strip() not in ("", "-", "/"):
            return ""
        return self.words[neighbor].text

    def coordinated(self, first: int, last: int, steps: tuple[int, ...] = (-1, 1)) -> list[str]:
        """Return the words joined to the words ``first`` to ``last`` by a comma or a word like
        `and`.
        """
        joined = []
        for step in steps:
            index = first if step < 0 else last
            neighbor = index + step
            far = index + 2 * step
            if not 0 <= neighbor < len(self.words):
                continue
            if self.lower[neighbor] in WORDS.coordinators and 0 <= far < len(self.words):
                joined.append(self.lower[far])
            elif not self.neighbor(index, step):  # a comma
                joined.append(self.lower[neighbor])
        return joined


@dataclass(frozen=True)
class _Context:
    """A mention among the words of its caption, and the surface forms of adjectives and nouns."""

    caption: Wording
    mention: Mention
    # Positions of the adjective's and the noun's words.
    first: int
    last: int
    noun_first: int
    noun_last: int
    adjectives: Mapping[str, str]
    nouns: Collection[str]

    @property
    def words(self) -> list[str]:
        return self.caption.lower

    @property
    def previous(self) -> str:
        """The word directly before the adjective, or ""."""
        return self.caption.neighbor(self.first, -1)

    @property
    def following(self) -> str:
        """The word directly after the adjective, or ""."""
        return self.caption.neighbor(self.last, 1)

    @property
    def after_noun(self) -> str:
        """The word directly after the noun, or ""."""
        return self.caption.neighbor(self.noun_last, 1)

    @property
    def is_stacking(self) -> bool:
        """Whether the adjective stands in a row with others: `long pointed bill`."""
        return self.mention.adjective in WORDS.stacking

    @property
    def between(self) -> list[str]:
        """The words between the adjective and a noun after it."""
        return self.words[self.last + 1 : self.noun_first]


def article(word: str) -> str:
    """Return ``a`` or ``an``, by the sound of ``word``."""
    lower = word.lower()
    if lower.startswith(tuple(WORDS.consonant_sounds)):
        return "a"
    return "an" if lower[:1] in "aeiou" else "a"


def cased(word: str, like: str) -> str:
    """Return ``word`` in the case of ``like``: BLACK, Black or black."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    if like[:1].isupper():
        return word[:1].upper() + word[1:]
    return word


def contradicts(a: str, b: str) -> bool:
    """Return whether two adjectives (canonical) exclude each other."""
    return b in WORDS.contradictions.get(a, ()) or a in WORDS.contradictions.get(b, ())


def contradiction(
    caption: Wording, changed: Sequence[Mention], new: str, mentions: Sequence[Mention]
) -> bool:
    """Return whether the rest of the caption, with these ``mentions``, contradicts ``new``
    (canonical).

    ``new`` replaces the adjective of ``changed``, which are mentions of one noun and one adjective.
    """
    noun = changed[0].noun
    old = changed[0].adjective
    adjectives = _adjectives_of_same_thing(noun, old, mentions)
    # `a long pointed bill` cannot become `a round pointed bill`.
    if any(contradicts(new, adjective) for adjective in adjectives):
        return True
    # What follows is about colors.
    if old in WORDS.stacking:
        return False
    if _names_whole_and_part(noun, old, mentions):
        return True
    changed_ranges = [caption.word_range(mention.start, mention.end) for mention in changed]
    words = caption.lower
    for i, word in enumerate(words):
        if word != old or (i, i) in changed_ranges:
            continue
        # `a black bird that is black all over`
        if WORDS.everywhere.intersection(words[max(0, i - 2) : i + 3]):
            return True
    if new not in words:
        return False
    # `a red bill, not a blue one`, `black except for its red bill`.
    excluding = WORDS.exceptions | WORDS.scopes["n"] | WORDS.scopes["d"] | WORDS.scopes["l"]
    return bool(excluding.intersection(words))


def _adjectives_of_same_thing(noun: str, old: str, mentions: Sequence[Mention]) -> set[str]:
    """Return the other adjectives of a noun; words for a whole bird are of one thing."""
    is_whole = noun in WORDS.whole_bird or old not in WORDS.stacking and noun == "feather"
    adjectives = set()
    for mention in mentions:
        if mention.noun == noun or is_whole and mention.noun in WORDS.whole_bird:
            adjectives.add(mention.adjective)
    return adjectives - {old}


def _names_whole_and_part(noun: str, old: str, mentions: Sequence[Mention]) -> bool:
    """Return whether the old color is also that of another word for the whole: `a black bird with
    black feathers`, `an orange flower with petals that are orange near the center`.
    """
    for whole in (WORDS.whole_bird | {"feather"}, WORDS.whole_flower):
        if noun not in whole:
            continue
        for mention in mentions:
            if mention.adjective == old and mention.noun in whole and mention.noun != noun:
                return True
    return False


def objection(
    caption: Wording,
    mention: Mention,
    new: str,
    adjectives: Mapping[str, str],
    nouns: Collection[str],
) -> str | None:
    """Return the reason why a mention's adjective cannot become ``new`` (canonical); None if it
    can.
    """
    adjective = caption.word_range(mention.start, mention.end)
    noun = caption.word_range(mention.noun_start, mention.noun_end)
    # As written: `grey` is a form of gray, `light-gray` may be none.
    surface = caption.text[mention.start : mention.end].lower()
    if adjective is None or noun is None or adjectives.get(surface) != mention.adjective:
        return "not a plain word"
    # What is read otherwise than written hides what is beside the word.
    if normalize(caption.text).kinds:
        return "not a plain word"
    context = _Context(caption, mention, *adjective, *noun, adjectives, nouns)
    if _in_phrase(context):
        return "part of a phrase"
    if new in WORDS.clashes.get(context.previous, ()):
        return "shade clashes"
    if not context.is_stacking and _beside_another(context, new):
        return "beside another"
    if _in_comparison(context, new):
        return "comparison"
    if _may_be_of_another(context):
        return "may be of another noun"
    return None


def _in_phrase(context: _Context) -> bool:
    """Return whether the adjective is part of a phrase: `jet black`, `curved down`, `sharply
    pointed`.
    """
    previous = context.previous
    if previous in WORDS.fixed_before or previous in WORDS.no_swap_after:
        return True
    # `curved down`
    if context.following in WORDS.no_swap_before:
        return True
    is_adverb = previous.endswith("ly") and previous not in context.nouns  # `belly` is a noun
    return context.is_stacking and is_adverb and previous not in WORDS.degree_adverbs


def _beside_another(context: _Context, new: str) -> bool:
    """Return whether a color is beside another one, or would be joined to itself: `black and black
    wings`.
    """
    for word in (context.previous, context.following):
        if word.endswith("ish") or word in context.adjectives or word in WORDS.unlisted_colors:
            return True
    # `black and white wings` cannot become `white and white wings`.
    joined = context.caption.coordinated(context.first, context.last)
    return new in {context.adjectives.get(word) for word in joined}


def _in_comparison(context: _Context, new: str) -> bool:
    """Return whether the adjective is in a comparison, or the caption compares by its degree or
    that of ``new``.
    """
    words = context.words
    next_words = words[context.last + 1 : context.last + 3]
    if next_words[:1] == ["in"] and WORDS.measures.intersection(next_words[1:]):
        return True  # `short in length`
    if _compared(words, context.first, context.last):
        return True
    degrees = {context.mention.adjective, new}
    if context.is_stacking:
        # `a small head compared to its longer bill`, anywhere in the caption
        comparatives = {f"{word}r" if word.endswith("e") else f"{word}er" for word in degrees}
        return not (WORDS.comparisons | comparatives | {"for"}).isdisjoint(words)
    # `gray body and darker gray wings`
    for word, following in pairwise(words):
        if word in WORDS.darker and context.adjectives.get(following) in degrees:
            return True
    return False


def _compared(words: list[str], first: int, last: int) -> bool:
    """Return whether words are part of a comparison: `longer than`, `as long as`, `long compared
    to`.
    """
    around = words[max(0, first - REACH) : last + 1 + REACH]
    if WORDS.comparisons.intersection(around):
        return True
    # `a long tail for its size`.
    for word, following in pairwise(words[last + 1 : last + 2 + REACH]):
        if word == "for" and following in WORDS.possessives:
            return True
    # `as long as`, `almost long as`, but not `long as well as`.
    next_words = words[last + 1 : last + 5]
    if next_words[:1] == ["as"] and next_words[1:2] != ["well"]:
        return True
    return "as" in words[max(0, first - 3) : first] and "as" in next_words


def _may_be_of_another(context: _Context) -> bool:
    """Return whether the adjective may modify a noun other than the mention's."""
    # `the bill is red`
    if context.noun_first <= context.last:
        return _predicate_of_another(context)
    # `red headed bird`
    if _in_ed(context.words[context.noun_last]):
        return _participle_of_another(context)
    return (
        _shared_with_next(context)
        or _noun_continues(context)
        or _phrase_breaks(context)
        or _ends_predicate(context)
        or _noun_comes_sooner(context)
    )


def _predicate_of_another(context: _Context) -> bool:
    """Return whether an adjective after its noun may modify another noun."""
    words = context.words
    # `a bird with a yellow crown is white`: the bird is white.
    is_subject = words[context.noun_last + 1] in WORDS.simple_copulas
    if is_subject and "with" in words[max(0, context.noun_first - 4) : context.noun_first]:
        return True
    # `a white breast and brown on its side`: a color as a noun; `feathers that are gray and white
    # speckled`.
    uncolored = (word for word in words[context.last + 1 :] if word not in WORDS.colored)
    following = next(uncolored, "")
    return following in WORDS.surfaces or not context.is_stacking and _is_pattern(following)


def _participle_of_another(context: _Context) -> bool:
    """Return whether `headed` has more than its adjective: `black headed and tailed`, `small white
    headed bird`.
    """
    allowed: frozenset[str] = frozenset()
    if not context.is_stacking:
        # `black and white headed`
        allowed = WORDS.coordinators.union(context.adjectives)
    if not allowed.issuperset(context.between):
        return True
    return any(map(_in_ed, _joined_after_noun(context)))


def _joined_after_noun(context: _Context) -> list[str]:
    return context.caption.coordinated(context.noun_last, context.noun_last, steps=(1,))


def _shared_with_next(context: _Context) -> bool:
    """Return whether a noun shares the adjective: `black head and tail`, but not `black head and
    tail that is red`.
    """
    joined = _joined_after_noun(context)
    if joined and joined[0] in WORDS.sides:  # `white throat and upper breast`
        return True
    next_words = context.words[context.noun_last + 2 : context.noun_last + 4]
    # The next noun has a predicate of its own.
    if not (WORDS.simple_copulas | WORDS.relatives).isdisjoint(next_words):
        return False
    return any(word in context.nouns for word in joined)


def _noun_continues(context: _Context) -> bool:
    """Return whether the noun is the first of several: `a yellow eye line`, `a black tail lower
    belly`.
    """
    following = context.after_noun
    is_part = following in context.nouns or following in WORDS.sides or _in_ed(following)
    if following and following not in WORDS.neutral_nouns and is_part:
        return True
    # `a large head size`, `a huge wing white span`.
    next_words = context.words[context.noun_last + 1 : context.noun_last + 3]
    return not WORDS.sizes.isdisjoint(next_words)


def _phrase_breaks(context: _Context) -> bool:
    """Return whether the adjective's phrase ends before the noun: `shades of yellow and patches`,
    `yellow bird has`.
    """
    inner_words = context.between
    if not inner_words:
        return False
    # `shades of yellow and patches`
    if inner_words[-1] in WORDS.coordinators or not WORDS.breaks.isdisjoint(inner_words):
        return True
    return not context.is_stacking and any(map(_is_pattern, inner_words))


def _ends_predicate(context: _Context) -> bool:
    """Return whether the adjective ends a predicate: `a bill that is black and black and white
    wings`.
    """
    words = context.words
    start = context.first - 1
    # Over `black and black`, to the verb before them.
    while start >= 0 and (words[start] in context.adjectives or words[start] in WORDS.joins):
        start -= 1
    if start < 0:
        return False
    # `that is black and black and white wings`
    if words[start] in WORDS.simple_copulas:
        return True
    # `an eyering that is very black and small feet`.
    follows_copula = start > 0 and words[start - 1] in WORDS.simple_copulas
    return follows_copula and words[start] not in WORDS.phrase_starts


def _noun_comes_sooner(context: _Context) -> bool:
    """Return whether another noun comes before the mention's: `white eye medium length beak`."""
    sooner = [word for word in context.between if word in context.nouns]
    if not sooner or WORDS.ordinals.issuperset(sooner):
        return False
    # A `black cheek patch` is black, but `a pointed beak feathers are gray` describes two parts.
    is_mark = context.mention.noun in WORDS.marks_and_feathers
    has_predicate = context.after_noun in WORDS.simple_copulas
    return not is_mark or len(sooner) < len(context.between) or has_predicate


def _in_ed(word: str) -> bool:
    """Return whether the word ends like a participle; `red` does not count."""
    return word.endswith("ed") and len(word) > len("red")


def _is_pattern(word: str) -> bool:
    """Return whether a color before the word belongs to a pattern: `black striped wings`."""
    return _in_ed(word) and word not in WORDS.plain_ed
