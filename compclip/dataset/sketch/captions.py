"""Captions of a scene, and the facts that they state.

A caption describes a few parts by color, by shape or by both, as real bird captions do: attributive, predicative,
relative, coordinated, stacked, shared by two parts, with synonyms, mostly without punctuation. Every statement is true
of the scene.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from compclip.dataset.sketch.world import PARTS, Dice, Scene

# What people write for a part (with plural, and weight), and for a color or a shape (with weight).
NOUNS: dict[str, tuple[tuple[str, bool, float], ...]] = {
    **{part: ((part, False, 1),) for part in ("back", "crown", "head", "nape", "tail", "throat")},
    "belly": (("belly", False, 5), ("stomach", False, 1), ("abdomen", False, 1)),
    "bill": (("bill", False, 3), ("beak", False, 3)),
    "breast": (("breast", False, 3), ("chest", False, 2)),
    "eye": (("eyes", True, 1),),
    "foot": (("feet", True, 1),),
    "tarsus": (("legs", True, 1),),
    "wing": (("wings", True, 6), ("wing", False, 1)),
}
SYNONYMS: dict[str, tuple[tuple[str, float], ...]] = {
    "gray": (("gray", 1), ("grey", 1)),
    "small": (("small", 3), ("tiny", 1), ("little", 1)),
    "large": (("large", 3), ("big", 1), ("huge", 1)),
    "long": (("long", 4), ("elongated", 1)),
    "short": (("short", 4), ("stubby", 1)),
    "pointed": (("pointed", 2), ("pointy", 2)),
    "curved": (("curved", 3), ("hooked", 1)),
    "thin": (("thin", 4), ("narrow", 1), ("skinny", 1), ("slender", 1)),
    "round": (("round", 2), ("rounded", 1)),
    "wide": (("wide", 2), ("broad", 1)),
}
# How often a part is named; parts with shapes more often, as in real captions.
SALIENCE = {
    "back": 2, "belly": 4, "bill": 5, "breast": 3, "crown": 4, "eye": 2.5, "foot": 2.5, "head": 2.5, "nape": 2,
    "tail": 4.5, "tarsus": 3, "throat": 2, "wing": 5,
}  # fmt: skip
# How many facts a caption states, with cumulative fractions, and how many parts are drawn for them.
FACTS = ((3, 4, 5, 6), (0.02, 0.2, 0.55, 1.0))
MOST_PARTS = 7
BIRDS = ("this bird", "this bird", "the bird", "a bird", "this particular bird")
HAVING = ("it has", "the bird has", "it also has")
BARE = (
    "this bird is standing on the ground",
    "a picture of a bird that was drawn by hand",
    "a bird seen from the side",
    "this is a bird with feathers all over",
    "the bird stands still and looks ahead",
    "this is one of the birds that people like to look at",
)


@dataclass(frozen=True)
class Fact:
    """A statement; its adjective is at ``start`` to ``end`` (exclusive) of the caption's characters."""

    part: str
    kind: str
    value: str
    start: int
    end: int


@dataclass(frozen=True)
class Caption:
    text: str
    facts: tuple[Fact, ...]


# A word, and what it states if it is an adjective: part, kind and value, once for each part.
Word = tuple[str, tuple[tuple[str, str, str], ...]]


@dataclass(frozen=True)
class Mention:
    """What a caption says of one part, or of two parts at once: kinds and values, in order."""

    parts: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


def _words(text: str) -> list[Word]:
    return [(word, ()) for word in text.split()]


@cache
def _cumulative(options: tuple[tuple, ...]) -> list[float]:
    return list(accumulate(option[-1] for option in options))


def choice(dice: Dice, options: tuple[tuple, ...]) -> tuple:
    """Draw one of ``options``, whose last values are their weights."""
    return dice.weighted(options, _cumulative(options))


def synonym(dice: Dice, value: str) -> str:
    return choice(dice, SYNONYMS.get(value, ((value, 1),)))[0]


def _adjectives(mention: Mention, dice: Dice) -> list[list[Word]]:
    return [
        [(synonym(dice, value), tuple((part, kind, value) for part in mention.parts))] for kind, value in mention.values
    ]


def _nouns(mention: Mention, dice: Dice) -> tuple[list[Word], bool]:
    """Return the nouns of a mention joined by ``and``, and whether the first is a plural, without an article."""
    chosen = [choice(dice, NOUNS[part]) for part in mention.parts]
    return _words(" and ".join(noun for noun, _, _ in chosen)), chosen[0][1]


def _article(word: str) -> list[Word]:
    return _words("an" if word[0] in "aeiou" else "a")


def _phrase(mention: Mention, dice: Dice) -> list[Word]:
    """Return a noun phrase: `a long yellow bill`, `brown wings`, `a short and red tail`, `a white breast and belly`."""
    groups = _adjectives(mention, dice)
    nouns, plural = _nouns(mention, dice)
    adjectives = _joined(groups, "and" if dice.chance(0.2) else "")
    return [*([] if plural else _article(adjectives[0][0])), *adjectives, *nouns]


def _relative(mention: Mention, dice: Dice) -> list[Word]:
    """Return a noun with a relative clause: `wings that are brown`, `a bill that is long and yellow`."""
    nouns, plural = _nouns(mention, dice)
    adjectives = _joined(_adjectives(mention, dice), "and")
    noun = nouns if plural else [*_article(nouns[0][0]), *nouns]
    return [*noun, *_words(f"that {'are' if plural else 'is'}"), *adjectives]


def _clause(mention: Mention, dice: Dice) -> list[Word]:
    """Return a sentence about a part: `its bill is long and yellow`, `the wings are brown in color`."""
    nouns, plural = _nouns(mention, dice)
    adjectives = _joined(_adjectives(mention, dice), "and")
    color_alone = len(mention.values) == 1 and mention.values[0][0] == "color"
    closing = _words("in color") if color_alone and dice.chance(0.3) else []
    return [*_words(dice.pick(("its", "the"))), *nouns, *_words("are" if plural else "is"), *adjectives, *closing]


def _joined(groups: Sequence[list[Word]], joint: str) -> list[Word]:
    words = list(groups[0])
    for group in groups[1:]:
        words += _words(joint) + group
    return words


def _listed(groups: Sequence[list[Word]], dice: Dice) -> list[Word]:
    """Join phrases as `a b and c`, `a and b and c` or `a, b, and c`."""
    style = dice.pick(("and", "", "", ","))
    words = list(groups[0])
    for i, group in enumerate(groups[1:], start=1):
        last = i == len(groups) - 1
        if style == "," and len(groups) > 2:
            words += _words(",")
        words += _words("and" if last or style == "and" else "") + group
    return words


def _render(words: Sequence[Word]) -> Caption:
    text = ""
    facts = []
    for word, stated in words:
        if text and word != ",":
            text += " "
        start = len(text)
        text += word
        facts += [Fact(part, kind, value, start, len(text)) for part, kind, value in stated]
    return Caption(text, tuple(facts))


def _mentions(scene: Scene, dice: Dice) -> list[Mention]:
    """Choose what a caption says: parts by color, shape or both, until it states enough facts."""
    wanted = dice.weighted(*FACTS)
    order = dice.several(PARTS, [SALIENCE[p] for p in PARTS], MOST_PARTS)
    mentions: list[Mention] = []
    stated = 0
    for i, part in enumerate(order):
        if stated >= wanted:
            break
        color, shape = scene[f"{part}:color"], scene.get(f"{part}:shape")
        assert color is not None
        # An ordinary shape is never mentioned, any other usually.
        if shape is not None and dice.chance(0.8):
            both = wanted - stated > 1 and dice.chance(0.65)
            mention = Mention((part,), (("shape", shape), ("color", color)) if both else (("shape", shape),))
        else:
            twins = [p for p in order[i + 1 :] if scene[f"{p}:color"] == color] if wanted - stated > 1 else []
            if twins and dice.chance(0.5):
                order.remove(twins[0])
                mention = Mention((part, twins[0]), (("color", color),))
            else:
                mention = Mention((part,), (("color", color),))
        mentions.append(mention)
        stated += len(mention.parts) * len(mention.values)
    return mentions


def write_caption(scene: Scene, dice: Dice) -> Caption:
    """Write one caption of ``scene``; a few state nothing about any part.

    A relative clause is placed so that it cannot absorb what follows: `a crown that is red wings` is not English, and
    `blue feet and eyes that are red` is ambiguous.
    """
    if dice.chance(0.03):
        return _render(_words(dice.pick(BARE)))
    mentions = _mentions(scene, dice)
    # Only a single part is the subject of a clause; two that share an adjective are listed.
    single = [m for m in mentions if len(m.parts) == 1]
    bird = _words(dice.pick(BIRDS))
    frame = dice.unit()
    if frame < 0.25 and single:
        first, rest = single[0], [m for m in mentions if m is not single[0]]
        words = [*bird, *_words("has"), *_relative(first, dice)]
        if rest:
            words += [*_words(dice.pick(("and has", "and it has"))), *_listed([_phrase(m, dice) for m in rest], dice)]
        return _render(words)
    if frame < 0.45 and single and len(mentions) > 1:
        last, rest = single[-1], [m for m in mentions if m is not single[-1]]
        listed = _listed([_phrase(m, dice) for m in rest], dice)
        if dice.chance(0.4):
            ending = [*_words("and it has"), *_relative(last, dice)]
        else:
            ending = [*_words(dice.pick(("while", ", and"))), *_clause(last, dice)]
        return _render([*bird, *_words("has"), *listed, *ending])
    if frame < 0.55 and single and len(mentions) > 1:
        first, rest = single[0], [m for m in mentions if m is not single[0]]
        listed = _listed([_phrase(m, dice) for m in rest], dice)
        return _render([*_clause(first, dice), *_words("and"), *_words(dice.pick(HAVING)), *listed])
    if frame < 0.65 and len(single) == len(mentions):
        return _render(_joined([_clause(m, dice) for m in mentions], "and" if len(mentions) < 3 else ", and"))
    opening = [*bird, *_words("has")] if dice.chance(0.6) else _words(dice.pick(("a bird with", "this is a bird with")))
    return _render([*opening, *_listed([_phrase(m, dice) for m in mentions], dice)])
