"""Rules on the wording of English captions around an adjective: which words a swap may change.

The rules come from reading swapped captions of real birds. They concern words, not compositions:
for a user's lexicon, the rules for its words apply.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from compclip.core.normal import normalize
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


@dataclass(frozen=True)
class CaptionWord:
    """A word of a caption, in lower case, and its offsets."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Wording:
    text: str

    @cached_property
    def words(self) -> list[CaptionWord]:
        return [
            CaptionWord(m.group().lower(), m.start(), m.end())
            for m in CAPTION_WORD.finditer(self.text)
        ]

    @cached_property
    def lower(self) -> list[str]:
        return [word.text for word in self.words]

    def at(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last word of a range of characters; None if it splits a word."""
        inside = [i for i, w in enumerate(self.words) if w.end > start and w.start < end]
        if not inside or self.words[inside[0]].start != start or self.words[inside[-1]].end != end:
            return None
        return inside[0], inside[-1]

    def beside(self, index: int, step: int) -> str:
        """Return the word next to ``index`` (step -1 or 1), "" if more than spaces, a hyphen or a
        slash is between.
        """
        other = index + step
        if not 0 <= other < len(self.words):
            return ""
        left, right = sorted((index, other))
        gap = self.text[self.words[left].end : self.words[right].start]
        return self.words[other].text if gap.strip() in ("", "-", "/") else ""

    def coordinated(self, first: int, last: int, steps: tuple[int, ...] = (-1, 1)) -> list[str]:
        """Return the words joined to the words ``first`` to ``last`` by a comma or a word like
        `and`.
        """
        joined = []
        for step in steps:
            index = first if step < 0 else last
            if 0 <= index + step < len(self.words):
                near, far = self.lower[index + step], index + 2 * step
                if near in WORDS.coordinators and 0 <= far < len(self.words):
                    joined.append(self.lower[far])
                elif not self.beside(index, step):
                    joined.append(near)
        return joined


@dataclass(frozen=True)
class _Place:
    """A mention among the words of its caption, and the surface forms of adjectives and nouns."""

    caption: Wording
    mention: Mention
    first: int
    last: int
    noun_first: int
    noun_last: int
    adjectives: Mapping[str, str]
    nouns: Collection[str]
    # The words directly beside the adjective and after the noun, or "".
    before: str
    after: str
    after_noun: str

    @property
    def words(self) -> list[str]:
        return self.caption.lower

    @property
    def is_stacking(self) -> bool:
        return self.mention.adjective in WORDS.stacking

    @property
    def between(self) -> list[str]:
        """The words between the adjective and a noun after it."""
        return self.words[self.last + 1 : self.noun_first]


def article(word: str) -> str:
    """Return ``a`` or ``an``, by the sound of ``word``."""
    vowel = word[:1].lower() in "aeiou" and not word.lower().startswith(
        tuple(WORDS.consonant_sounds)
    )
    return "an" if vowel else "a"


def cased(word: str, like: str) -> str:
    """Return ``word`` in the case of ``like``: BLACK, Black or black."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


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
    noun, old = changed[0].noun, changed[0].adjective
    is_whole = noun in WORDS.whole_bird or old not in WORDS.stacking and noun == "feather"
    others = {
        m.adjective for m in mentions if m.noun == noun or is_whole and m.noun in WORDS.whole_bird
    } - {old}
    if any(contradicts(new, other) for other in others):
        return True
    if old in WORDS.stacking:
        return False
    # `a black bird with black feathers`, `an orange flower with petals that are orange near the
    # center`.
    wholes = [
        whole for whole in (WORDS.whole_bird | {"feather"}, WORDS.whole_flower) if noun in whole
    ]
    if any(m.adjective == old and m.noun in whole - {noun} for whole in wholes for m in mentions):
        return True
    words = caption.lower
    places = {caption.at(m.start, m.end) for m in changed}
    for i, word in enumerate(words):
        if (
            word == old
            and (i, i) not in places
            and WORDS.everywhere.intersection(words[max(0, i - 2) : i + 3])
        ):
            return True
    # `a red bill, not a blue one`, `black except for its red bill`.
    excluding = WORDS.exceptions | WORDS.scopes["n"] | WORDS.scopes["d"] | WORDS.scopes["l"]
    return new in words and bool(excluding.intersection(words))


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
    adjective, noun = (
        caption.at(mention.start, mention.end),
        caption.at(mention.noun_start, mention.noun_end),
    )
    surface = caption.text[mention.start : mention.end].lower()
    if adjective is None or noun is None or adjectives.get(surface) != mention.adjective:
        return "not a plain word"
    # What is read otherwise than written hides what is beside the word.
    if normalize(caption.text).kinds:
        return "not a plain word"
    beside = (caption.beside(*at) for at in ((adjective[0], -1), (adjective[1], 1), (noun[1], 1)))
    place = _Place(caption, mention, *adjective, *noun, adjectives, nouns, *beside)
    if _in_phrase(place):
        return "part of a phrase"
    if new in WORDS.clashes.get(place.before, ()):
        return "shade clashes"
    if not place.is_stacking and _beside_another(place, new):
        return "beside another"
    if _in_comparison(place, new):
        return "comparison"
    return "may be of another noun" if _may_be_of_another(place) else None


def _in_phrase(place: _Place) -> bool:
    """Return whether the adjective is part of a phrase: `jet black`, `curved down`, `sharply
    pointed`.
    """
    before = place.before
    if (
        before in WORDS.fixed_before
        or before in WORDS.no_swap_after
        or place.after in WORDS.no_swap_before
    ):
        return True
    is_adverb = before.endswith("ly") and before not in place.nouns  # `belly` is a noun
    return place.is_stacking and is_adverb and before not in WORDS.degree_adverbs


def _beside_another(place: _Place, new: str) -> bool:
    """Return whether a color is beside another one, or would be joined to itself: `black and black
    wings`.
    """
    beside = place.before, place.after
    if any(
        word.endswith("ish") or word in place.adjectives or word in WORDS.unlisted_colors
        for word in beside
    ):
        return True
    return new in {
        place.adjectives.get(word) for word in place.caption.coordinated(place.first, place.last)
    }


def _in_comparison(place: _Place, new: str) -> bool:
    """Return whether the adjective is in a comparison, or the caption compares by its degree or
    that of ``new``.
    """
    words, last = place.words, place.last
    measured = words[last + 1 : last + 2] == ["in"] and WORDS.measures.intersection(
        words[last + 2 : last + 3]
    )
    if measured or _compared(words, place.first, last):
        return True
    both = {place.mention.adjective, new}
    if place.is_stacking:  # `a small head compared to its longer bill`, anywhere in the caption
        comparatives = {f"{word}{'r' if word.endswith('e') else 'er'}" for word in both}
        return not (WORDS.comparisons | comparatives | {"for"}).isdisjoint(words)
    # `gray body and darker gray wings`
    return any(a in WORDS.darker and place.adjectives.get(b) in both for a, b in pairwise(words))


def _compared(words: list[str], first: int, last: int) -> bool:
    """Return whether words are part of a comparison: `longer than`, `as long as`, `long compared
    to`.
    """
    if WORDS.comparisons.intersection(words[max(0, first - REACH) : last + 1 + REACH]):
        return True
    # `a long tail for its size`.
    if any(
        a == "for" and b in WORDS.possessives
        for a, b in pairwise(words[last + 1 : last + 2 + REACH])
    ):
        return True
    # `as long as`, `almost long as`, but not `long as well as`.
    if words[last + 1 : last + 2] == ["as"] and words[last + 2 : last + 3] != ["well"]:
        return True
    return "as" in words[max(0, first - 3) : first] and "as" in words[last + 1 : last + 5]


def _may_be_of_another(place: _Place) -> bool:
    """Return whether the adjective may modify a noun other than the mention's."""
    if place.noun_first <= place.last:
        return _predicate_of_another(place)
    if _in_ed(place.words[place.noun_last]):
        return _participle_of_another(place)
    return (
        _shared_with_next(place)
        or _noun_continues(place)
        or _phrase_breaks(place)
        or _ends_predicate(place)
        or _noun_comes_sooner(place)
    )


def _predicate_of_another(place: _Place) -> bool:
    """Return whether an adjective after its noun may modify another noun."""
    words, first, last = place.words, place.noun_first, place.noun_last
    # `a bird with a yellow crown is white`: the bird is white.
    if words[last + 1] in WORDS.simple_copulas and "with" in words[max(0, first - 4) : first]:
        return True
    # `a white breast and brown on its side`: a color as a noun; `feathers that are gray and white
    # speckled`.
    following = next((word for word in words[place.last + 1 :] if word not in WORDS.colored), "")
    return following in WORDS.surfaces or not place.is_stacking and _is_pattern(following)


def _participle_of_another(place: _Place) -> bool:
    """Return whether `headed` has more than its adjective: `black headed and tailed`, `small white
    headed bird`.
    """
    allowed = frozenset() if place.is_stacking else WORDS.coordinators.union(place.adjectives)
    joined = place.caption.coordinated(place.noun_last, place.noun_last, steps=(1,))
    return not allowed.issuperset(place.between) or any(map(_in_ed, joined))


def _shared_with_next(place: _Place) -> bool:
    """Return whether a noun shares the adjective: `black head and tail`, but not `black head and
    tail that is red`.
    """
    joined = place.caption.coordinated(place.noun_last, place.noun_last, steps=(1,))
    if joined and joined[0] in WORDS.sides:  # `white throat and upper breast`
        return True
    after = place.words[place.noun_last + 2 : place.noun_last + 4]
    has_predicate = not (WORDS.simple_copulas | WORDS.relatives).isdisjoint(after)
    return not has_predicate and any(word in place.nouns for word in joined)


def _noun_continues(place: _Place) -> bool:
    """Return whether the noun is the first of several: `a yellow eye line`, `a black tail lower
    belly`.
    """
    after = place.after_noun
    if (
        after
        and after not in WORDS.neutral_nouns
        and (after in place.nouns or after in WORDS.sides or _in_ed(after))
    ):
        return True
    # `a large head size`, `a huge wing white span`.
    return not WORDS.sizes.isdisjoint(place.words[place.noun_last + 1 : place.noun_last + 3])


def _phrase_breaks(place: _Place) -> bool:
    """Return whether the adjective's phrase ends before the noun: `shades of yellow and patches`,
    `yellow bird has`.
    """
    between = place.between
    if between and (between[-1] in WORDS.coordinators or not WORDS.breaks.isdisjoint(between)):
        return True
    return not place.is_stacking and any(map(_is_pattern, between))


def _ends_predicate(place: _Place) -> bool:
    """Return whether the adjective ends a predicate: `a bill that is black and black and white
    wings`.
    """
    words, start = place.words, place.first - 1
    while start >= 0 and (words[start] in place.adjectives or words[start] in WORDS.joins):
        start -= 1
    if start < 0:
        return False
    # `an eyering that is very black and small feet`.
    is_degree = (
        start > 0
        and words[start - 1] in WORDS.simple_copulas
        and words[start] not in WORDS.phrase_starts
    )
    return words[start] in WORDS.simple_copulas or is_degree


def _noun_comes_sooner(place: _Place) -> bool:
    """Return whether another noun comes before the mention's: `white eye medium length beak`."""
    sooner = [word for word in place.between if word in place.nouns]
    # A `black cheek patch` is black, but `a pointed beak feathers are gray` describes two parts.
    is_mark = (
        place.mention.noun in WORDS.marks_and_feathers
        and len(sooner) == len(place.between)
        and place.after_noun not in WORDS.simple_copulas
    )
    return bool(sooner) and not is_mark and not WORDS.ordinals.issuperset(sooner)


def _in_ed(word: str) -> bool:
    """Return whether the word ends like a participle; `red` does not count."""
    return word.endswith("ed") and len(word) > len("red")


def _is_pattern(word: str) -> bool:
    """Return whether a color before the word belongs to a pattern: `black striped wings`."""
    return _in_ed(word) and word not in WORDS.plain_ed
