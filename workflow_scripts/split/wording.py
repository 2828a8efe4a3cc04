"""How an English caption is worded around an adjective: what a swap may touch, and what it may not.

The rules come from reading swapped captions of real birds. They are about words, not compositions: a user's own lexicon
gets those that apply to its words.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from workflow_scripts.text.lexicon import word_set

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

# Words that make one with the adjective after them: `jet black`, `off white`, `stick thin`.
FIXED_BEFORE = word_set(
    "jet blood off snow sky navy royal baby burnt rust rusty lime olive lemon ash ashy slate coal pitch milky milk "
    "cream creamy hot neon forest army mustard blackish charcoal chocolate burgundy powder midnight electric salmon "
    "solid ink inky egg fire fiery sea mint pastel cherry brick tomato canary cobalt ivory pearl smoky sandy smoke "
    "steel coffee oak peacock ruby rose emerald sapphire sage dove honey coral flesh hunter kelly "
    "stick pencil paper rail razor needle dagger"
)
# Colors that lexicons of plain colors do not list: beside them, as beside `-ish`, a color is half of a compound.
UNLISTED_COLORS = word_set(
    "beige buff teal golden gold rusty rust rufous maroon turquoise cream chestnut silver silvery bronze copper "
    "olive lavender violet crimson scarlet peach aqua cinnamon tawny ivory iridescent charcoal navy indigo "
    "cyan magenta burgundy amber ochre auburn blonde peachy fuchsia mauve"
)
# Colors that do not go with these words: `light black`, `bright gray`.
CLASHES = {
    **dict.fromkeys(("light", "lighter", "pale", "paler", "faint", "soft"), frozenset({"black", "white"})),
    **dict.fromkeys(("dark", "darker", "darkest", "deep", "deeper", "rich"), frozenset({"white", "tan"})),
    **dict.fromkeys(
        ("bright", "brighter", "brightly", "brilliant", "vibrant", "vivid", "vividly", "shocking", "colorful"),
        frozenset({"black", "gray", "brown", "tan", "white"}),
    ),
}
# Words near a color that put it everywhere, and words that exclude something from it.
EVERYWHERE = word_set(
    "all entirely completely totally wholly fully solid solidly only overall throughout everywhere over"
)
EXCEPTIONS = word_set("except excepting besides apart aside save excluding exception other than minus")
# Pairs of adjectives that cannot both describe one thing.
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
WHOLE_BIRD = frozenset({"bird", "body"})
# The color of a flower is that of its petals.
WHOLE_FLOWER = frozenset({"flower", "petal"})
# Adverbs of degree; others are part of a phrase: `sharply pointed`.
DEGREE_ADVERBS = word_set(
    "slightly relatively extremely fairly really extraordinarily exceptionally incredibly unusually moderately mildly "
    "notably especially particularly surprisingly remarkably"
)
# After a color, these words in -ed describe the noun; others a pattern of that color: `black striped wings`.
PLAIN_ED = word_set("colored coloured sized shaped toned hued pointed curved rounded hooked webbed elongated")
# After a color they add nothing: `white colored on its belly`, `white in color`.
COLORED = word_set("colored coloured in color colour")
# After a noun they do not take its adjective: `a white belly area`, `a red headed bird`.
NEUTRAL_NOUNS = word_set("bird birds area areas region section color colors coloring coloration colour")
# After a noun they take its degree: `a large head size`.
SIZES = word_set("size sizes shape length width span")
# They distinguish parts of a noun: `white throat and upper breast`.
SIDES = word_set("upper lower under outer inner front rear entire whole")
# They compare a color with the same color elsewhere: `gray body and darker gray wings`.
DARKER = word_set("darker lighter brighter paler deeper duller")
COMPARISONS = word_set(
    "than compared comparison comparatively comparing relative relatively proportion proportionate proportional "
    "proportionally disproportionately ratio regard regards same similar matching matches match contrast contrasting "
    "contrasts different opposite relation unlike oversized times twice though although despite whereas however"
)
POSSESSIVES = word_set("it its it's his her their the a such")
MEASURES = (["in", "size"], ["in", "length"], ["in", "width"], ["in", "shape"])
# An adjective at most so many words away from a word of comparison may be part of it.
REACH = 6
# Before an adjective, an adverb of degree or a measure: `medium long`, `more pointed`.
NO_SWAP_AFTER = word_set(
    "more most less least medium so too as half not no non without to inch inches sized length downward downwards "
    "upward upwards down up"
)
# After an adjective: `curved down`, `large in size`, `wide spread`, `small to medium`.
NO_SWAP_BEFORE = word_set(
    "down downward downwards up upward upwards inward outward inwards outwards forward size sized shaped shape to ish "
    "like spread spreading set spaced span spanned"
)
PLACES = word_set("on around at along over under underneath beneath above below across near throughout through between")
COPULAS = word_set("is are was were be being looks appears seems")
RELATIVES = word_set("that which")
# Between an adjective and a noun they begin another phrase.
BREAKS = word_set("a an the its his her their it with has have had of in on to at from")
# Nouns for marks on another noun, which take its adjective; and nouns that only tell which noun follows.
MARKS = word_set("patch spot stripe feather eyering wingbar")
ORDINALS = word_set("primary secondary")
PHRASE_STARTS = word_set("a an the its his her their with has have and or but some of in on")
JOINS = frozenset({"and", "or", "&", "with", "to", "but", "n", "nd"})


@dataclass(frozen=True)
class Mention:
    """An occurrence of a pair in a caption, with the characters of both words."""

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


@lru_cache(maxsize=1)  # the candidates of a caption follow each other
def _words(text: str) -> list[Word]:
    return [Word(m.group().lower(), m.start(), m.end()) for m in WORD.finditer(text)]


@dataclass(frozen=True)
class Caption:
    text: str

    @property
    def words(self) -> list[Word]:
        return _words(self.text)

    @cached_property
    def lower(self) -> list[str]:
        return [word.text for word in self.words]

    def at(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last word of the characters; None if they split a word."""
        inside = [i for i, w in enumerate(self.words) if w.end > start and w.start < end]
        if not inside or self.words[inside[0]].start != start or self.words[inside[-1]].end != end:
            return None
        return inside[0], inside[-1]

    def beside(self, index: int, step: int) -> str | None:
        """Return the word next to ``index`` (step -1 or 1) if only spaces, a hyphen or a slash are between."""
        other = index + step
        if not 0 <= other < len(self.words):
            return None
        left, right = sorted((index, other))
        gap = self.text[self.words[left].end : self.words[right].start]
        return self.words[other].text if gap.strip() in ("", "-", "/") else None

    def coordinated(self, first: int, last: int, steps: tuple[int, ...] = (-1, 1)) -> list[str]:
        """Return the words joined to the words ``first`` to ``last`` by a comma or a word like `and`."""
        joined = []
        for step in steps:
            index = first if step < 0 else last
            if 0 <= index + step < len(self.words):
                near, far = self.lower[index + step], index + 2 * step
                if near in JOINS and 0 <= far < len(self.words):
                    joined.append(self.lower[far])
                elif self.beside(index, step) is None:
                    joined.append(near)
        return joined


@dataclass(frozen=True)
class _Place:
    """A mention among the words of its caption, and the surface forms of adjectives and nouns."""

    caption: Caption
    mention: Mention
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
    def is_stacking(self) -> bool:
        return self.mention.adjective in STACKING

    # The words directly beside the adjective and after the noun, or an empty string.

    @cached_property
    def before(self) -> str:
        return self.caption.beside(self.first, -1) or ""

    @cached_property
    def after(self) -> str:
        return self.caption.beside(self.last, 1) or ""

    @cached_property
    def after_noun(self) -> str:
        return self.caption.beside(self.noun_last, 1) or ""

    @cached_property
    def between(self) -> list[str]:
        """The words between the adjective and a noun after it."""
        return self.words[self.last + 1 : self.noun_first]


def article(word: str) -> str:
    """Return ``a`` or ``an``, by the sound of ``word``."""
    vowel = word[:1].lower() in "aeiou" and not word.lower().startswith(("uni", "use", "eu", "one"))
    return "an" if vowel else "a"


def cased(word: str, like: str) -> str:
    """Return ``word`` in the case of ``like``: BLACK, Black or black."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def contradicts(a: str, b: str) -> bool:
    """Return whether two adjectives (canonical) cannot both describe one thing."""
    return frozenset((a, b)) in CONTRADICTIONS


def contradiction(caption: Caption, changed: Sequence[Mention], new: str, mentions: Sequence[Mention]) -> bool:
    """Return whether the rest of the caption, whose ``mentions`` these are, contradicts ``new`` (canonical).

    ``changed`` are mentions of one noun and one adjective, which ``new`` replaces.
    """
    noun, old = changed[0].noun, changed[0].adjective
    is_whole = noun in WHOLE_BIRD or old not in STACKING and noun == "feather"
    others = {m.adjective for m in mentions if m.noun == noun or is_whole and m.noun in WHOLE_BIRD} - {old}
    if any(contradicts(new, other) for other in others):
        return True
    if old in STACKING:
        return False
    # `a black bird with black feathers`.
    if is_whole and any(m.adjective == old and m.noun != noun and m.noun in (*WHOLE_BIRD, "feather") for m in mentions):
        return True
    # `an orange flower with petals that are orange near the center`.
    if noun in WHOLE_FLOWER and any(m.adjective == old and m.noun in WHOLE_FLOWER - {noun} for m in mentions):
        return True
    words = caption.lower
    places = {caption.at(m.start, m.end) for m in changed}
    for i, word in enumerate(words):
        if word == old and (i, i) not in places and EVERYWHERE.intersection(words[max(0, i - 2) : i + 3]):
            return True
    return new in words and bool(EXCEPTIONS.intersection(words))


def objection(
    caption: Caption, mention: Mention, new: str, adjectives: Mapping[str, str], nouns: Collection[str]
) -> str | None:
    """Return why a mention's adjective cannot become ``new`` (canonical); None if it can."""
    adjective, noun = caption.at(mention.start, mention.end), caption.at(mention.noun_start, mention.noun_end)
    surface = caption.text[mention.start : mention.end].lower()
    if adjective is None or noun is None or adjectives.get(surface) != mention.adjective:
        return "not a plain word"
    place = _Place(caption, mention, *adjective, *noun, adjectives, nouns)
    if _in_phrase(place):
        return "part of a phrase"
    if new in CLASHES.get(place.before, ()):
        return "shade clashes"
    if not place.is_stacking and _beside_another(place, new):
        return "beside another"
    if _in_comparison(place, new):
        return "comparison"
    return "may be of another noun" if _may_be_of_another(place) else None


def _in_phrase(place: _Place) -> bool:
    """Return whether the adjective is part of a phrase: `jet black`, `curved down`, `sharply pointed`."""
    before = place.before
    if before in FIXED_BEFORE or before in NO_SWAP_AFTER or place.after in NO_SWAP_BEFORE:
        return True
    is_adverb = before.endswith("ly") and before not in place.nouns  # `belly` is a noun
    return place.is_stacking and is_adverb and before not in DEGREE_ADVERBS


def _beside_another(place: _Place, new: str) -> bool:
    """Return whether a color stands beside another one, or would be joined to itself: `black and black wings`."""
    beside = place.before, place.after
    if any(word.endswith("ish") or word in place.adjectives or word in UNLISTED_COLORS for word in beside):
        return True
    return new in {place.adjectives.get(word) for word in place.caption.coordinated(place.first, place.last)}


def _in_comparison(place: _Place, new: str) -> bool:
    """Return whether the adjective is part of a comparison, or the caption compares by it or by ``new``."""
    words, last = place.words, place.last
    if words[last + 1 : last + 3] in MEASURES or _compared(words, place.first, last):
        return True
    if place.is_stacking:
        return _measured({place.mention.adjective, new}, words)
    return _shaded({place.mention.adjective, new}, words, place.adjectives)


def _compared(words: list[str], first: int, last: int) -> bool:
    """Return whether words are part of a comparison: `longer than`, `as long as`, `long compared to`."""
    if COMPARISONS.intersection(words[max(0, first - REACH) : last + 1 + REACH]):
        return True
    # `a long tail for its size`.
    if any(a == "for" and b in POSSESSIVES for a, b in pairwise(words[last + 1 : last + 2 + REACH])):
        return True
    # `as long as`, `almost long as`, but not `long as well as`.
    if words[last + 1 : last + 2] == ["as"] and words[last + 2 : last + 3] != ["well"]:
        return True
    return "as" in words[max(0, first - 3) : first] and "as" in words[last + 1 : last + 5]


def _measured(degrees: Collection[str], words: list[str]) -> bool:
    """Return whether the caption compares by a degree anywhere: `a small head compared to its longer bill`."""
    comparatives = {f"{word}{'r' if word.endswith('e') else 'er'}" for word in degrees}
    return not (COMPARISONS | comparatives | {"for"}).isdisjoint(words)


def _shaded(colors: Collection[str], words: list[str], adjectives: Mapping[str, str]) -> bool:
    """Return whether a color is darker or lighter anywhere: `gray body and darker gray wings`."""
    return any(a in DARKER and adjectives.get(b) in colors for a, b in pairwise(words))


def _may_be_of_another(place: _Place) -> bool:
    """Return whether the adjective may modify another noun than the mention's."""
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
    """Return whether an adjective after its noun may modify another one."""
    words, first, last = place.words, place.noun_first, place.noun_last
    # `a bird with a yellow crown is white`: the bird.
    if words[last + 1] in COPULAS and "with" in words[max(0, first - 4) : first]:
        return True
    # `a white breast and brown on its side`: a color as a noun; `feathers that are gray and white speckled`.
    following = next((word for word in words[place.last + 1 :] if word not in COLORED), "")
    return following in PLACES or not place.is_stacking and _is_pattern(following)


def _participle_of_another(place: _Place) -> bool:
    """Return whether `headed` is not alone with its adjective: `black headed and tailed`, `small white headed bird`."""
    allowed = frozenset() if place.is_stacking else JOINS.union(place.adjectives)
    joined = place.caption.coordinated(place.noun_last, place.noun_last, steps=(1,))
    return not allowed.issuperset(place.between) or any(map(_in_ed, joined))


def _shared_with_next(place: _Place) -> bool:
    """Return whether a noun is joined: `black head and tail`, but not `black head and wings that are white`."""
    joined = place.caption.coordinated(place.noun_last, place.noun_last, steps=(1,))
    if joined and joined[0] in SIDES:  # `white throat and upper breast`
        return True
    has_predicate = (COPULAS | RELATIVES).intersection(place.words[place.noun_last + 2 : place.noun_last + 4])
    return not has_predicate and any(word in place.nouns for word in joined)


def _noun_continues(place: _Place) -> bool:
    """Return whether the noun is the first of several: `a yellow eye line`, `a black tail lower belly`."""
    after = place.after_noun
    if after and after not in NEUTRAL_NOUNS and (after in place.nouns or after in SIDES or _in_ed(after)):
        return True
    # `a large head size`, `a huge wing white span`.
    return not SIZES.isdisjoint(place.words[place.noun_last + 1 : place.noun_last + 3])


def _phrase_breaks(place: _Place) -> bool:
    """Return whether the adjective's phrase ends before the noun: `shades of yellow and patches`, `yellow bird has`."""
    between = place.between
    if between and (between[-1] in JOINS or not BREAKS.isdisjoint(between)):
        return True
    return not place.is_stacking and any(map(_is_pattern, between))


def _ends_predicate(place: _Place) -> bool:
    """Return whether the adjective ends a predicate: `a bill that is black and black and white wings`."""
    words, start = place.words, place.first - 1
    while start >= 0 and (words[start] in place.adjectives or words[start] in ("and", "or", "&")):
        start -= 1
    if start < 0:
        return False
    # `an eyering that is very black and small feet`.
    is_degree = start > 0 and words[start - 1] in COPULAS and words[start] not in PHRASE_STARTS
    return words[start] in COPULAS or is_degree


def _noun_comes_sooner(place: _Place) -> bool:
    """Return whether another noun comes before the mention's: `white eye medium length beak`."""
    sooner = [word for word in place.between if word in place.nouns]
    # A `black cheek patch` is black, but `a pointed beak feathers are gray` is two things.
    is_mark = place.mention.noun in MARKS and len(sooner) == len(place.between) and place.after_noun not in COPULAS
    return bool(sooner) and not is_mark and not ORDINALS.issuperset(sooner)


def _in_ed(word: str) -> bool:
    """Return whether the word is a participle or formed like one; `red` is not."""
    return word.endswith("ed") and len(word) > len("red")


def _is_pattern(word: str) -> bool:
    """Return whether a color before the word is one of a pattern: `black striped wings`."""
    return _in_ed(word) and word not in PLAIN_ED
