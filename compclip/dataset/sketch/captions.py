"""Captions of a scene, and the facts that they state.

A caption describes a few parts by color, by shape or by both, as real bird captions do:
attributive, predicative, relative, coordinated, stacked, shared by two parts, with synonyms, mostly
without punctuation. Every statement is true of the scene.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from compclip.dataset.sketch.world import PARTS, Dice, Scene

# Words for a part (singular, plural, weight), and for a color or a shape (with weight).
PART_NOUNS: dict[str, tuple[tuple[str, bool, float], ...]] = {
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
# How often a part is named: parts with shapes more often, as in real captions.
SALIENCE = {
    "back": 2,
    "belly": 4,
    "bill": 5,
    "breast": 3,
    "crown": 4,
    "eye": 2.5,
    "foot": 2.5,
    "head": 2.5,
    "nape": 2,
    "tail": 4.5,
    "tarsus": 3,
    "throat": 2,
    "wing": 5,
}
# Numbers of facts in a caption, with cumulative fractions; and parts that are drawn to state them.
FACTS = ((3, 4, 5, 6), (0.02, 0.2, 0.55, 1.0))
# Enough for the facts even if no part gets two, and no two parts share one.
MOST_PARTS = 7
BIRD_PHRASES = ("this bird", "this bird", "the bird", "a bird", "this particular bird")
HAVING = ("it has", "the bird has", "it also has")
# Captions that describe no part, as some real ones.
BARE = (
    "this bird is standing on the ground",
    "a picture of a bird that was drawn by hand",
    "a bird seen from the side",
    "this is a bird with feathers all over",
    "the bird stands still and looks ahead",
    "this is one of the birds that people like to look at",
)


@dataclass(frozen=True)
class SketchFact:
    """A statement; its adjective is at characters ``start`` to ``end`` (exclusive) of the
    caption.
    """

    part: str
    kind: str
    value: str
    start: int
    end: int


@dataclass(frozen=True)
class SketchCaption:
    text: str
    facts: tuple[SketchFact, ...]


@dataclass(frozen=True)
class Adjective:
    """A word that states ``value`` of each part."""

    word: str
    # several if parts share the adjective
    parts: tuple[str, ...]
    kind: str
    value: str


Pieces = Sequence[str | Adjective]  # of a caption, in order; text may be empty


@dataclass(frozen=True)
class PartMention:
    """A caption's statements about one part, or about two parts at once: kinds and values, in
    order.
    """

    parts: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


@cache
def _cumulative(options: tuple[tuple, ...]) -> list[float]:
    return list(accumulate(option[-1] for option in options))


def choice(dice: Dice, options: tuple[tuple, ...]) -> tuple:
    """Draw one of ``options``, whose last values are their weights."""
    return dice.weighted(options, _cumulative(options))


def synonym(dice: Dice, value: str) -> str:
    return choice(dice, SYNONYMS.get(value, ((value, 1),)))[0]


def _adjectives(mention: PartMention, dice: Dice) -> list[list[Adjective]]:
    """Return each adjective of a mention as a group of its own, for ``_join``."""
    groups = []
    for kind, value in mention.values:
        word = synonym(dice, value)
        groups.append([Adjective(word, mention.parts, kind, value)])
    return groups


def _nouns(mention: PartMention, dice: Dice) -> tuple[str, bool]:
    """Return the nouns of a mention joined by ``and``, and whether the first is plural (without an
    article).
    """
    chosen = [choice(dice, PART_NOUNS[part]) for part in mention.parts]
    _, is_plural, _ = chosen[0]
    return " and ".join(noun for noun, _, _ in chosen), is_plural


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _join(groups: Sequence[Pieces], joint: str, last: str | None = None) -> Pieces:
    """Join groups by ``joint``, the last one by ``last`` if it is given."""
    if last is None:
        last = joint
    pieces = list(groups[0])
    for number, group in enumerate(groups[1:], 2):
        pieces.append(last if number == len(groups) else joint)
        pieces += group
    return pieces


def _phrase(mention: PartMention, dice: Dice) -> Pieces:
    """Return a noun phrase: `a long yellow bill`, `brown wings`, `a short and red tail`, `a white
    breast and belly`.
    """
    adjectives = _adjectives(mention, dice)
    nouns, is_plural = _nouns(mention, dice)
    first_word = adjectives[0][0].word
    article = "" if is_plural else _article(first_word)
    joint = "and" if dice.chance(0.2) else ""
    return [article, *_join(adjectives, joint), nouns]


def _relative_clause(mention: PartMention, dice: Dice) -> Pieces:
    """Return a noun with a relative clause: `wings that are brown`, `a bill that is long and
    yellow`.
    """
    # Drawn before the adjectives; another order would give other captions for a seed.
    nouns, is_plural = _nouns(mention, dice)
    subject = [nouns, "that are"] if is_plural else [_article(nouns), nouns, "that is"]
    adjectives = _adjectives(mention, dice)
    return [*subject, *_join(adjectives, "and")]


def _clause(mention: PartMention, dice: Dice) -> Pieces:
    """Return a sentence about a part: `its bill is long and yellow`, `the wings are brown in
    color`.
    """
    nouns, is_plural = _nouns(mention, dice)
    adjectives = _adjectives(mention, dice)
    kinds = [kind for kind, _ in mention.values]
    # `in color` fits only an adjective of color that stands alone.
    is_color = kinds == ["color"]
    closing = "in color" if is_color and dice.chance(0.3) else ""
    determiner = dice.pick(("its", "the"))
    verb = "are" if is_plural else "is"
    return [determiner, nouns, verb, *_join(adjectives, "and"), closing]


def _list(mentions: Sequence[PartMention], dice: Dice) -> Pieces:
    """Return noun phrases as `a b and c`, `a and b and c` or `a, b, and c`."""
    phrases = [_phrase(mention, dice) for mention in mentions]
    style = dice.pick(("and", "", "", ","))
    if style == "," and len(phrases) > 2:
        return _join(phrases, ",", ", and")
    joint = "and" if style == "and" else ""
    return _join(phrases, joint, "and")


def _list_except(excluded: PartMention, mentions: Sequence[PartMention], dice: Dice) -> Pieces:
    return _list([mention for mention in mentions if mention != excluded], dice)


def _render(pieces: Pieces) -> SketchCaption:
    """Write pieces as a text, without a blank before a comma, and locate its facts."""
    text = ""
    facts = []
    for piece in pieces:
        word = piece if isinstance(piece, str) else piece.word
        if text and word and not word.startswith(","):
            text += " "
        start = len(text)
        text += word
        if isinstance(piece, Adjective):
            for part in piece.parts:
                facts.append(SketchFact(part, piece.kind, piece.value, start, len(text)))
    return SketchCaption(text, tuple(facts))


def _take_mention(remaining: list[str], scene: Scene, missing: int, dice: Dice) -> PartMention:
    """Take the first of the ``remaining`` parts, and choose at most ``missing`` facts about it."""
    part = remaining.pop(0)
    color = scene[f"{part}:color"]
    shape = scene.get(f"{part}:shape")
    assert color is not None
    # An ordinary shape is never mentioned, other shapes usually are.
    if shape is not None and dice.chance(0.8):
        facts = [("shape", shape)]
        # Color and shape together: `a long yellow bill`.
        if missing > 1 and dice.chance(0.65):
            facts.append(("color", color))
        return PartMention((part,), tuple(facts))
    if missing > 1:
        # Two parts of one color share the adjective: `a white breast and belly`.
        twins = [other for other in remaining if scene[f"{other}:color"] == color]
        if twins and dice.chance(0.5):
            remaining.remove(twins[0])
            return PartMention((part, twins[0]), (("color", color),))
    return PartMention((part,), (("color", color),))


def _mentions(scene: Scene, dice: Dice) -> list[PartMention]:
    """Choose the statements of a caption: parts by color, shape or both, until there are enough
    facts.
    """
    wanted = dice.weighted(*FACTS)
    salience = [SALIENCE[part] for part in PARTS]
    remaining = dice.several(PARTS, salience, MOST_PARTS)
    mentions = []
    facts = 0
    while remaining and facts < wanted:
        mention = _take_mention(remaining, scene, wanted - facts, dice)
        mentions.append(mention)
        # An adjective that two parts share states a fact about each.
        facts += len(mention.parts) * len(mention.values)
    return mentions


def _sentence(mentions: Sequence[PartMention], dice: Dice) -> Pieces:
    """Return a sentence of a random form that makes all statements.

    A relative clause is placed so that it cannot absorb what follows: `a crown that is red wings`
    is not English, and `blue feet and eyes that are red` is ambiguous.
    """
    # Only a single part is the subject of a clause; two parts that share an adjective are listed.
    single = [mention for mention in mentions if len(mention.parts) == 1]
    has_several = len(mentions) > 1
    bird = dice.pick(BIRD_PHRASES)
    form = dice.unit()
    if form < 0.25 and single:
        # `this bird has wings that are brown and has a long bill`
        pieces = [bird, "has", *_relative_clause(single[0], dice)]
        if has_several:
            link = dice.pick(("and has", "and it has"))
            pieces += [link, *_list_except(single[0], mentions, dice)]
        return pieces
    if form < 0.45 and single and has_several:
        subject = single[-1]
        listed = _list_except(subject, mentions, dice)
        # `the bird has a long bill and it has wings that are brown`
        if dice.chance(0.4):
            return [bird, "has", *listed, "and it has", *_relative_clause(subject, dice)]
        # `a bird has a long bill while its wings are brown in color`
        link = dice.pick(("while", ", and"))
        return [bird, "has", *listed, link, *_clause(subject, dice)]
    if form < 0.55 and single and has_several:
        listed = _list_except(single[0], mentions, dice)
        # `its wings are brown and it also has a long bill`
        clause = _clause(single[0], dice)
        return [*clause, "and", dice.pick(HAVING), *listed]
    if form < 0.65 and len(single) == len(mentions):
        # `its wings are brown and the bill is long`; more than two are separated by commas.
        clauses = [_clause(mention, dice) for mention in mentions]
        joint = "and" if len(mentions) < 3 else ", and"
        return _join(clauses, joint)
    if dice.chance(0.6):
        opening = f"{bird} has"
    else:
        opening = dice.pick(("a bird with", "this is a bird with"))
    return [opening, *_list(mentions, dice)]


def caption_scene(scene: Scene, dice: Dice) -> SketchCaption:
    """Return a caption of ``scene``; a few captions do not describe parts."""
    if dice.chance(0.03):
        return _render([dice.pick(BARE)])
    mentions = _mentions(scene, dice)
    return _render(_sentence(mentions, dice))
