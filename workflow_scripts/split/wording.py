"""How an English caption is worded around an adjective: what a swap may touch, and what it may not.

The rules come from reading swapped captions of real birds. They know words, not compositions: a lexicon of
one's own gets those that apply to its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


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
    "different opposite"
)
# How many words from one of these an adjective may be part of the comparison.
REACH = 6
# An adverb that only degrees take, or a measure: `medium long`, `more pointed`.
NO_SWAP_AFTER = word_set("more most less least medium so too as half not no non without")
JOINS = frozenset({"and", "or", "&", "with", "to", "but", "n", "nd"})


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

    def gap(self, left: int, right: int) -> str:
        """The characters between two neighbouring words."""
        return self.text[self.words[left].end : self.words[right].start]

    def beside(self, index: int, step: int) -> str | None:
        """The word next to ``index`` (step -1 or 1) with only spaces, a hyphen or a slash between; else None."""
        other = index + step
        if not 0 <= other < len(self.words):
            return None
        gap = self.gap(min(index, other), max(index, other))
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


def objection(caption: Caption, start: int, end: int, old: str, new: str, forms: dict[str, str]) -> str | None:
    """Why the adjective at ``start:end`` (canonical ``old``) cannot become ``new``; None where it can.

    ``forms``: surface forms of the composition's adjectives, to their canonical words.
    """
    place = caption.at(start, end)
    if place is None or forms.get(caption.text[start:end].lower()) != old:
        return "not a plain word"
    first, last = place
    before, after = caption.beside(first, -1), caption.beside(last, 1)
    if before in FIXED_BEFORE or before in NO_SWAP_AFTER:
        return "part of a phrase"
    if before in CLASHES and new in CLASHES[before]:
        return "shade clashes"
    if old not in STACKING:
        for word in (before, after):
            if word is not None and (word.endswith("ish") or word in forms or word in SHADES):
                return "beside another"
        # `black and black wings`.
        if new in {forms.get(word) for word in coordinated(caption, first, last)}:
            return "beside another"
    if compared(caption, first, last):
        return "comparison"
    return None


def coordinated(caption: Caption, first: int, last: int) -> list[str]:
    """The words joined to the words ``first`` to ``last`` by a comma or a word like `and`."""
    found = []
    for index, step in ((first, -1), (last, 1)):
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
    return "as" in words[max(0, first - 3) : first] and "as" in words[last + 1 : last + 5]
