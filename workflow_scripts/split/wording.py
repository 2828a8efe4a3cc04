"""How an English caption is worded around an adjective: what a swap may touch, and what it may not.

The rules come from reading swapped captions of real birds. They know words, not compositions: a lexicon of
one's own gets those that apply to its words.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


def word_set(text: str) -> frozenset[str]:
    """The words of a list written as a sentence."""
    return frozenset(text.split())


WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

# Words that make one color with the color after them: `jet black`, `off white`.
FIXED_BEFORE = word_set(
    "jet blood off snow sky navy royal baby burnt rust rusty lime olive lemon ash ashy slate coal pitch milky milk "
    "cream creamy hot neon forest army mustard blackish charcoal chocolate burgundy powder midnight electric salmon "
    "solid ink inky egg fire fiery sea mint pastel cherry brick tomato canary cobalt ivory pearl smoky sandy"
)
# Colors that lexicons of plain colors leave out: beside them, as beside `-ish`, a color is half of a compound.
SHADES = word_set(
    "beige buff teal golden gold rusty rust rufous maroon turquoise cream chestnut silver silvery bronze copper "
    "olive lavender violet crimson scarlet peach aqua cinnamon tawny ivory iridescent charcoal navy indigo "
    "cyan magenta burgundy amber ochre auburn blonde"
)
# What does not go with these words: `light black`, `bright gray`.
CLASHES = {
    **dict.fromkeys(("light", "lighter", "pale", "paler", "faint", "soft"), frozenset({"black", "white"})),
    **dict.fromkeys(("dark", "darker", "darkest", "deep", "deeper", "rich"), frozenset({"white", "tan"})),
    **dict.fromkeys(
        ("bright", "brighter", "brightly", "brilliant", "vibrant", "vivid", "vividly", "shocking", "colorful"),
        frozenset({"black", "gray", "brown", "tan", "white"}),
    ),
}
# Two of these cannot be said of one thing.
CONTRADICTIONS = frozenset(
    frozenset((word, other))
    for word, others in {
        "small": "large long wide thick",
        "large": "short thin",
        "long": "short round",
        "thin": "thick wide round",
        "straight": "curved round",
        "flat": "pointed sharp round curved thick",
        "pointed": "round wide",
        "sharp": "round wide",
    }.items()
    for other in others.split()
)
# Adjectives that stand in a row without making one: `long pointed bill`.
STACKING = frozenset().union(*CONTRADICTIONS)
COMPARISONS = word_set(
    "than compared comparison comparatively comparing relative relatively proportion proportionate proportional "
    "proportionally disproportionately ratio same similar matching matches match contrast contrasting contrasts "
    "different opposite relation unlike oversized"
)
POSSESSIVES = word_set("it its it's his her their the a such")
MEASURES = (["in", "size"], ["in", "length"], ["in", "width"])
# How many words from one of these an adjective may be part of the comparison.
REACH = 6
# An adverb that only degrees take, or a measure: `medium long`, `more pointed`.
NO_SWAP_AFTER = word_set("more most less least medium so too as half not no non without")
# `curved down`, `large in size`.
NO_SWAP_BEFORE = word_set(
    "down downward downwards up upward upwards inward outward inwards outwards forward size sized"
)
PLACES = word_set("on around at along over under underneath beneath above below across near throughout through between")
COPULAS = word_set("is are was were be being looks appears seems")
RELATIVES = word_set("that which")
# Nouns that stand on another noun and take its adjective, and nouns that before another only say which.
CARRIERS = word_set("patch spot stripe feather eyering wingbar")
ORDINALS = word_set("primary secondary")
STARTS = word_set("a an the its his her their with has have and or but some of in on")
JOINS = frozenset({"and", "or", "&", "with", "to", "but", "n", "nd"})


@dataclass(frozen=True)
class Mention:
    """An occurrence of a pair in a caption; the numbers are characters of its text."""

    adjective: str
    noun: str
    start: int
    end: int
    noun_start: int
    noun_end: int
    relation: str


@dataclass(frozen=True)
class Word:
    """A word of a caption, in lower case, and its characters."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Caption:
    """A caption's text and its words."""

    text: str

    @cached_property
    def words(self) -> list[Word]:
        return [Word(m.group().lower(), m.start(), m.end()) for m in WORD.finditer(self.text)]

    def at(self, start: int, end: int) -> tuple[int, int] | None:
        """Indices of the first and last word of the characters; None where they cut a word."""
        inside = [i for i, w in enumerate(self.words) if w.end > start and w.start < end]
        if not inside or self.words[inside[0]].start != start or self.words[inside[-1]].end != end:
            return None
        return inside[0], inside[-1]

    def beside(self, index: int, step: int) -> str | None:
        """The word next to ``index`` (step -1 or 1) with only spaces, a hyphen or a slash between; else None."""
        other = index + step
        if not 0 <= other < len(self.words):
            return None
        left, right = sorted((index, other))
        gap = self.text[self.words[left].end : self.words[right].start]
        return self.words[other].text if gap.strip() in ("", "-", "/") else None


def article(word: str) -> str:
    """``a`` or ``an`` before ``word``, by its sound."""
    vowel = word[:1].lower() in "aeiou" and not word.lower().startswith(("uni", "use", "eu", "one"))
    return "an" if vowel else "a"


def cased(word: str, like: str) -> str:
    """``word`` written as ``like`` is: BLACK, Black or black."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def contradicts(a: str, b: str) -> bool:
    """Whether two adjectives (canonical) cannot be said of one thing."""
    return frozenset((a, b)) in CONTRADICTIONS


def objection(
    caption: Caption, mention: Mention, new: str, adjectives: dict[str, str], nouns: Collection[str]
) -> str | None:
    """Why a mention's adjective cannot become ``new`` (canonical); None where it can.

    ``adjectives``: surface forms of the composition's adjectives, to their canonical words; ``nouns``: surface
    forms of nouns.
    """
    old = mention.adjective
    place = caption.at(mention.start, mention.end)
    noun = caption.at(mention.noun_start, mention.noun_end)
    if place is None or noun is None or adjectives.get(caption.text[mention.start : mention.end].lower()) != old:
        return "not a plain word"
    first, last = place
    before, after = caption.beside(first, -1), caption.beside(last, 1)
    if before in FIXED_BEFORE or before in NO_SWAP_AFTER or after in NO_SWAP_BEFORE:
        return "part of a phrase"
    if before in CLASHES and new in CLASHES[before]:
        return "shade clashes"
    if old not in STACKING:
        for word in (before, after):
            if word is not None and (word.endswith("ish") or word in adjectives or word in SHADES):
                return "beside another"
        # `black and black wings`.
        if new in {adjectives.get(word) for word in coordinated(caption, first, last)}:
            return "beside another"
    if [w.text for w in caption.words[last + 1 : last + 3]] in MEASURES or compared(caption, first, last):
        return "comparison"
    if _may_be_of_another(caption, mention, first, last, noun, nouns):
        return "may be of another noun"
    return None


def _may_be_of_another(
    caption: Caption, mention: Mention, first: int, last: int, noun: tuple[int, int], nouns: Collection[str]
) -> bool:
    """Whether the adjective, the words ``first`` to ``last``, may be about another noun than the words ``noun``."""
    words = [w.text for w in caption.words]
    if noun[0] <= last:
        # `a white breast and brown on its side`: a color as a noun.
        return last + 1 < len(words) and words[last + 1] in PLACES
    joined = coordinated(caption, noun[1], noun[1], steps=(1,))
    if words[noun[1]].endswith("ed"):
        # `black headed and tailed bird`.
        return any(word.endswith("ed") for word in joined)
    # `black head and tail`, but not `black head and wings that are white`.
    if (
        nouns
        and any(word in nouns for word in joined)
        and not COPULAS.union(RELATIVES).intersection(words[noun[1] + 2 : noun[1] + 4])
    ):
        return True
    # `an eyering that is black and small feet`.
    if (first and words[first - 1] in COPULAS) or (
        first > 1 and words[first - 2] in COPULAS and words[first - 1] not in STARTS
    ):
        return True
    # `white eye medium length beak`: a noun comes sooner; but a `black cheek patch` is black.
    sooner = [word for word in words[last + 1 : noun[0]] if word in nouns]
    carried = mention.noun in CARRIERS and noun[0] - last - 1 == len(sooner)
    return bool(sooner) and not carried and not ORDINALS.issuperset(sooner)


def coordinated(caption: Caption, first: int, last: int, steps: tuple[int, ...] = (-1, 1)) -> list[str]:
    """The words joined to the words ``first`` to ``last``, on either side, by a comma or a word like `and`."""
    found = []
    for step in steps:
        index = first if step < 0 else last
        if 0 <= index + step < len(caption.words):
            near = caption.words[index + step].text
            far = index + 2 * step
            if near in JOINS and 0 <= far < len(caption.words):
                found.append(caption.words[far].text)
            elif caption.beside(index, step) is None:
                found.append(near)
    return found


def compared(caption: Caption, first: int, last: int) -> bool:
    """Whether the words may be part of a comparison: `longer than`, `as long as`, `long compared to`."""
    words = [w.text for w in caption.words]
    if COMPARISONS.intersection(words[max(0, first - REACH) : last + 1 + REACH]):
        return True
    # `a long tail for its size`.
    if any(pair[0] == "for" and pair[1] in POSSESSIVES for pair in pairwise(words[last + 1 : last + 2 + REACH])):
        return True
    return "as" in words[max(0, first - 3) : first] and "as" in words[last + 1 : last + 5]
