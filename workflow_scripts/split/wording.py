"""How an English caption is worded around an adjective: what a swap may touch, and what it may not.

The rules come from reading swapped captions of real birds. They know words, not compositions: a lexicon of
one's own gets those that apply to its words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


def word_set(text: str) -> frozenset[str]:
    """The words of a list written as a sentence."""
    return frozenset(text.split())


WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

# Words that make one with the adjective after them: `jet black`, `off white`, `stick thin`.
FIXED_BEFORE = word_set(
    "jet blood off snow sky navy royal baby burnt rust rusty lime olive lemon ash ashy slate coal pitch milky milk "
    "cream creamy hot neon forest army mustard blackish charcoal chocolate burgundy powder midnight electric salmon "
    "solid ink inky egg fire fiery sea mint pastel cherry brick tomato canary cobalt ivory pearl smoky sandy smoke "
    "steel coffee oak peacock ruby rose emerald sapphire sage dove honey coral flesh hunter kelly "
    "stick pencil paper rail razor needle dagger"
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
# What says that a color is everywhere, before it or after it, and that it is not.
EVERYWHERE = word_set(
    "all entirely completely totally wholly fully solid solidly only overall throughout everywhere over"
)
EXCEPTIONS = word_set("except excepting besides apart aside save excluding exception other than minus")
# Two of these cannot be said of one thing.
CONTRADICTIONS = frozenset(
    frozenset((word, other))
    for word, others in {
        "small": "large long wide thick larger bigger massive huge enormous giant oversized medium average",
        "large": "short thin smaller petite minuscule miniature medium average",
        "long": "short round shorter squat stumpy medium",
        "short": "longer tall lengthy medium",
        "thin": "thick wide round thicker wider bulky stocky chunky heavy full puffy",
        "thick": "thinner",
        "wide": "pointed sharp thinner",
        "straight": "curved round bent crooked arched curvy curving wavy",
        "flat": "pointed sharp round curved thick fat puffy full bulbous conical tubular cylindrical",
        "pointed": "round blunt oval oblong circular square",
        "sharp": "round blunt dull oval oblong circular",
        "round": "triangular oval oblong square angular conical slim lean",
        "fat": "thin stringy lean slim",
        "oval": "triangular square angular conical oblong",
        "oblong": "triangular square angular conical short",
        "triangular": "curved wavy circular square",
        "stringy": "thick wide full",
    }.items()
    for other in others.split()
)
# Adjectives that stand in a row without making one: `long pointed bill`.
STACKING = word_set(
    "small large long short thin thick fat wide straight curved wavy flat pointed sharp round oval oblong triangular "
    "stringy"
)
# Nouns that mean all of the bird.
WHOLE = frozenset({"bird", "body"})
# Adverbs that degrees take; others say how: `sharply pointed`.
DEGREES = word_set(
    "slightly relatively extremely fairly really extraordinarily exceptionally incredibly unusually moderately mildly "
    "notably especially particularly surprisingly remarkably"
)
# With a color before them, these words in -ed stay about the noun; others are about a pattern: `black striped wings`.
PLAIN_ED = word_set("colored coloured sized shaped toned hued pointed curved rounded hooked webbed elongated")
# Behind a color they add nothing: `white colored on its belly`, `white in color`.
COLORED = word_set("colored coloured in color colour")
# Behind a noun they only say what of it: `a white belly area`, `a red headed bird`.
VAGUE = word_set("bird birds area areas region section color colors coloring coloration colour")
# Behind a noun they are what a degree is about: `a large head size`.
SIZES = word_set("size sizes shape length width span")
# They tell parts of a noun apart: `white throat and upper breast`.
SIDES = word_set("upper lower under outer inner front rear entire whole")
# They shade a color by another place of the same color: `gray body and darker gray wings`.
DARKER = word_set("darker lighter brighter paler deeper duller")
COMPARISONS = word_set(
    "than compared comparison comparatively comparing relative relatively proportion proportionate proportional "
    "proportionally disproportionately ratio regard regards same similar matching matches match contrast contrasting "
    "contrasts different opposite relation unlike oversized times twice though although despite whereas however"
)
POSSESSIVES = word_set("it its it's his her their the a such")
MEASURES = (["in", "size"], ["in", "length"], ["in", "width"], ["in", "shape"])
# How many words from one of these an adjective may be part of the comparison.
REACH = 6
# An adverb that only degrees take, or a measure: `medium long`, `more pointed`.
NO_SWAP_AFTER = word_set(
    "more most less least medium so too as half not no non without to inch inches sized length downward downwards "
    "upward upwards down up"
)
# `curved down`, `large in size`, `wide spread`, `small to medium`.
NO_SWAP_BEFORE = word_set(
    "down downward downwards up upward upwards inward outward inwards outwards forward size sized shaped shape to ish "
    "like spread spreading set spaced span spanned"
)
PLACES = word_set("on around at along over under underneath beneath above below across near throughout through between")
COPULAS = word_set("is are was were be being looks appears seems")
RELATIVES = word_set("that which")
# Between an adjective and its noun they begin something else.
BREAKS = word_set("a an the its his her their it with has have had of in on to at from")
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


def contradiction(caption: Caption, changed: Sequence[Mention], new: str, mentions: Sequence[Mention]) -> bool:
    """Whether ``new`` (canonical), in the place of the adjective of ``changed``, goes against what else is said.

    changed: mentions of one noun and one adjective; mentions: all of the caption.
    """
    noun, old = changed[0].noun, changed[0].adjective
    whole = noun in WHOLE or old not in STACKING and noun == "feather"
    others = {m.adjective for m in mentions if m.noun == noun or whole and m.noun in WHOLE} - {old}
    if any(contradicts(new, other) for other in others):
        return True
    if old in STACKING:
        return False
    # `a black bird with black feathers`.
    if whole and any(m.adjective == old and m.noun != noun and m.noun in (*WHOLE, "feather") for m in mentions):
        return True
    words = [w.text for w in caption.words]
    places = {caption.at(m.start, m.end) for m in changed}
    for i, word in enumerate(words):
        if word == old and (i, i) not in places and EVERYWHERE.intersection(words[max(0, i - 2) : i + 3]):
            return True
    return new in words and bool(EXCEPTIONS.intersection(words))


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
    adverb = before is not None and before.endswith("ly") and before not in nouns  # `belly` is none
    if old in STACKING and adverb and before not in DEGREES:
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
    if measured({old, new}, caption) if old in STACKING else shaded({old, new}, caption, adjectives):
        return "comparison"
    if _may_be_of_another(caption, mention, first, last, noun, adjectives, nouns):
        return "may be of another noun"
    return None


def _may_be_of_another(
    caption: Caption,
    mention: Mention,
    first: int,
    last: int,
    noun: tuple[int, int],
    adjectives: dict[str, str],
    nouns: Collection[str],
) -> bool:
    """Whether the adjective, the words ``first`` to ``last``, may be about another noun than the words ``noun``."""
    words = [w.text for w in caption.words]
    if noun[0] <= last:
        # `a bird with a yellow crown is white`: the bird.
        if words[noun[1] + 1] in COPULAS and "with" in words[max(0, noun[0] - 4) : noun[0]]:
            return True
        # `a white breast and brown on its side`: a color as a noun; `feathers that are gray and white speckled`.
        after = [word for word in words[last + 1 :] if word not in COLORED][:1]
        return bool(PLACES.intersection(after)) or mention.adjective not in STACKING and any(map(_is_pattern, after))
    between = words[last + 1 : noun[0]]
    joined = coordinated(caption, noun[1], noun[1], steps=(1,))
    degree = mention.adjective in STACKING
    if _in_ed(words[noun[1]]):
        # `black headed and tailed bird`, `a small white headed bird`.
        own = set(between) <= (set() if degree else JOINS.union(adjectives))
        return not own or any(map(_in_ed, joined))
    # `black head and tail`, but not `black head and wings that are white`.
    if joined:
        if joined[0] in SIDES:  # `white throat and upper breast`
            return True
        predicate = COPULAS.union(RELATIVES).intersection(words[noun[1] + 2 : noun[1] + 4])
        if any(word in nouns for word in joined) and not predicate:
            return True
    # `a white belly flank and vent`, `a yellow eye line`, `a large wing spanned bird`, `a black tail lower belly`.
    after = caption.beside(noun[1], 1)
    if after is not None and after not in VAGUE and (after in nouns or after in SIDES or _in_ed(after)):
        return True
    # `a large head size`, `a huge wing white span`.
    if SIZES.intersection(words[noun[1] + 1 : noun[1] + 3]):
        return True
    # `with shades of yellow and patches of black`, `a yellow bird has wings`.
    if between and (between[-1] in JOINS or BREAKS.intersection(between)):
        return True
    if not degree and any(map(_is_pattern, between)):
        return True
    # `a bill that is black and black and white wings`, `an eyering that is black and small feet`.
    start = first - 1
    while start >= 0 and (words[start] in adjectives or words[start] in ("and", "or", "&")):
        start -= 1
    leading = words[max(0, start - 1) : start + 1]
    if COPULAS.intersection(leading[-1:]) or (COPULAS.intersection(leading[:-1]) and leading[-1] not in STARTS):
        return True
    # `white eye medium length beak`: a noun comes sooner; but a `black cheek patch` is black.
    sooner = [word for word in between if word in nouns]
    # ... and a `pointed beak feathers are gray` is two things.
    carried = mention.noun in CARRIERS and len(sooner) == len(between) and after not in COPULAS
    return bool(sooner) and not carried and not ORDINALS.issuperset(sooner)


def _in_ed(word: str) -> bool:
    """Whether the word is a participle or made like one; `red` is not."""
    return word.endswith("ed") and len(word) > len("red")


def _is_pattern(word: str) -> bool:
    """Whether a color before the word is one of a pattern: `black striped wings`."""
    return _in_ed(word) and word not in PLAIN_ED


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


def shaded(colors: Collection[str], caption: Caption, adjectives: dict[str, str]) -> bool:
    """Whether one of the colors is darker or lighter in another place, or here: `gray body and darker gray wings`."""
    words = [w.text for w in caption.words]
    return any(a in DARKER and adjectives.get(b) in colors for a, b in pairwise(words))


def measured(degrees: Collection[str], caption: Caption) -> bool:
    """Whether the caption compares by one of the degrees, in any place: `a small head compared to its longer bill`."""
    words = {w.text for w in caption.words}
    more = {f"{word}{'r' if word.endswith('e') else 'er'}" for word in degrees}
    return bool(words & (COMPARISONS | more | {"for"}))


def compared(caption: Caption, first: int, last: int) -> bool:
    """Whether the words may be part of a comparison: `longer than`, `as long as`, `long compared to`."""
    words = [w.text for w in caption.words]
    if COMPARISONS.intersection(words[max(0, first - REACH) : last + 1 + REACH]):
        return True
    # `a long tail for its size`.
    if any(pair[0] == "for" and pair[1] in POSSESSIVES for pair in pairwise(words[last + 1 : last + 2 + REACH])):
        return True
    # `as long as`, `almost long as`, but not `long as well as`.
    if words[last + 1 : last + 2] == ["as"] and words[last + 2 : last + 3] != ["well"]:
        return True
    return "as" in words[max(0, first - 3) : first] and "as" in words[last + 1 : last + 5]
