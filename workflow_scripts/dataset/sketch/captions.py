"""Captions of a scene, and the facts that they state.

A caption names a few parts by color, by shape or by both, in the ways of real bird captions: attributive,
predicative, relative, coordinated, stacked, shared by two parts, with synonyms, mostly without punctuation.
Every statement is true of the scene.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from workflow_scripts.dataset.sketch.world import PARTS, Dice, Scene

# What people write for a part, a color, a shape, with weights; a plural takes no article.
NOUNS: dict[str, tuple[tuple[str, bool, float], ...]] = {
    "back": (("back", False, 1),),
    "belly": (("belly", False, 5), ("stomach", False, 1), ("abdomen", False, 1)),
    "bill": (("bill", False, 3), ("beak", False, 3)),
    "breast": (("breast", False, 3), ("chest", False, 2)),
    "crown": (("crown", False, 1),),
    "eye": (("eyes", True, 1),),
    "foot": (("feet", True, 1),),
    "head": (("head", False, 1),),
    "nape": (("nape", False, 1),),
    "tail": (("tail", False, 1),),
    "tarsus": (("legs", True, 3), ("tarsi", True, 1)),
    "throat": (("throat", False, 1),),
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
# How often a part is named: those with shapes more, as in real captions.
SALIENCE = {
    "back": 2, "belly": 4, "bill": 5, "breast": 3, "crown": 4, "eye": 2.5, "foot": 2.5, "head": 2.5, "nape": 2,
    "tail": 4.5, "tarsus": 3, "throat": 2, "wing": 5,
}  # fmt: skip
# How many facts a caption states, with running shares, and how many parts it may need for them.
FACTS = ((3, 4, 5, 6), (0.1, 0.3, 0.7, 1.0))
MOST_PARTS = 7
BIRDS = ("this bird", "this bird", "the bird", "a bird", "this particular bird")
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
    """A part has a value; the adjective is at ``start`` to ``end`` (exclusive) of the caption's characters."""

    part: str
    kind: str
    value: str
    start: int
    end: int


@dataclass(frozen=True)
class Caption:
    text: str
    facts: tuple[Fact, ...]


# A word, with what it states where it is an adjective: part, kind and value, once for each part.
Word = tuple[str, tuple[tuple[str, str, str], ...]]


@dataclass(frozen=True)
class Mention:
    """What a caption says of one part, or of two that share it: the values by kind, in order."""

    parts: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


def _words(text: str) -> list[Word]:
    return [(word, ()) for word in text.split()]


def _choice(dice: Dice, options: Sequence[tuple]) -> tuple:
    return dice.weighted(options, list(accumulate(option[-1] for option in options)))


def _adjectives(mention: Mention, dice: Dice) -> list[list[Word]]:
    """One group of words for each value of the mention."""
    groups = []
    for kind, value in mention.values:
        word = _choice(dice, SYNONYMS.get(value, ((value, 1),)))[0]
        groups.append([(word, tuple((part, kind, value) for part in mention.parts))])
    return groups


def _nouns(mention: Mention, dice: Dice) -> tuple[list[Word], bool]:
    """The nouns of a mention joined by ``and``, and whether the whole takes no article."""
    chosen = [_choice(dice, NOUNS[part]) for part in mention.parts]
    text = " and ".join(noun for noun, _, _ in chosen)
    return _words(text), chosen[0][1]


def _article(dice: Dice, first: str) -> list[Word]:
    # Real captions often forget the n.
    return _words("an" if first[0] in "aeiou" and not dice.chance(0.2) else "a")


def _phrase(mention: Mention, dice: Dice) -> list[Word]:
    """A noun phrase: `a long yellow bill`, `wings that are brown`, `a white breast and belly`."""
    groups = _adjectives(mention, dice)
    nouns, plural = _nouns(mention, dice)
    if len(mention.parts) == 1 and dice.chance(0.2):
        verb = "are" if plural else "is"
        noun = nouns if plural else [*_words("a"), *nouns] if nouns[0][0][0] not in "aeiou" else [*_words("an"), *nouns]
        return [*noun, *_words(f"that {verb}"), *_joined(groups, "and")]
    adjectives = groups[0] if len(groups) == 1 else _joined(groups, "and" if dice.chance(0.15) else "")
    article = [] if plural else _article(dice, adjectives[0][0])
    return [*article, *adjectives, *nouns]


def _clause(mention: Mention, dice: Dice) -> list[Word]:
    """A sentence about a part: `its bill is long and yellow`, `the wings are brown in color`."""
    groups = _adjectives(mention, dice)
    nouns, plural = _nouns(mention, dice)
    verb = "are" if plural or len(mention.parts) > 1 else "is"
    owner = dice.pick(("its", "its", "the"))
    said = _joined(groups, "and")
    closing = _words("in color") if mention.values[-1][0] == "color" and len(groups) == 1 and dice.chance(0.3) else []
    return [*_words(owner), *nouns, *_words(verb), *said, *closing]


def _joined(groups: Sequence[list[Word]], joint: str) -> list[Word]:
    words = list(groups[0])
    for group in groups[1:]:
        words += _words(joint) + group
    return words


def _listed(groups: Sequence[list[Word]], dice: Dice) -> list[Word]:
    """`a, b and c`, mostly without the comma."""
    style = dice.pick(("and", "", "", ","))
    words = list(groups[0])
    for i, group in enumerate(groups[1:], start=1):
        last = i == len(groups) - 1
        if style == "," and (not last or len(groups) > 2):
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
    """What a caption says: parts by color, shape or both, until it states as much as it should."""
    wanted = dice.weighted(*FACTS)
    order = dice.several(PARTS, [SALIENCE[p] for p in PARTS], MOST_PARTS)
    mentions: list[Mention] = []
    stated = 0
    for i, part in enumerate(order):
        if stated >= wanted:
            break
        color, shape = scene[f"{part}:color"], scene.get(f"{part}:shape")
        assert color is not None
        # An ordinary shape is never mentioned, one out of the ordinary mostly.
        if shape is not None and dice.chance(0.8):
            both = wanted - stated > 1 and dice.chance(0.65)
            mention = Mention((part,), (("shape", shape), ("color", color)) if both else (("shape", shape),))
        else:
            twins = [p for p in order[i + 1 :] if scene[f"{p}:color"] == color]
            if twins and wanted - stated > 1 and dice.chance(0.5):
                order.remove(twins[0])
                mention = Mention((part, twins[0]), (("color", color),))
            else:
                mention = Mention((part,), (("color", color),))
        mentions.append(mention)
        stated += len(mention.parts) * len(mention.values)
    return mentions


def write_caption(scene: Scene, dice: Dice) -> Caption:
    """One caption of ``scene``; a few state nothing about any part."""
    if dice.chance(0.03):
        return _render(_words(dice.pick(BARE)))
    mentions = _mentions(scene, dice)
    bird = dice.pick(BIRDS)
    frame = dice.unit()
    if frame < 0.5 or len(mentions) == 1:
        opening = dice.pick((f"{bird} has", f"{bird} has", "a bird with", "this is a bird with", "the bird has"))
        return _render([*_words(opening), *_listed([_phrase(m, dice) for m in mentions], dice)])
    if frame < 0.75:
        middle = dice.pick(("and has", "and also has", "with"))
        first, rest = _phrase(mentions[0], dice), [_phrase(m, dice) for m in mentions[1:]]
        return _render([*_words(f"{bird} has"), *first, *_words(middle), *_listed(rest, dice)])
    if frame < 0.9:
        first, rest = [_phrase(m, dice) for m in mentions[:-1]], _clause(mentions[-1], dice)
        return _render([*_words(f"{bird} has"), *_listed(first, dice), *_words("and"), *rest])
    return _render(_listed([_clause(m, dice) for m in mentions], dice))
