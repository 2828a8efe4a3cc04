"""Long captions of a scene: a sentence for each part of the bird, and a wrong version of each
sentence.

A description grows by true sentences. A sentence's negative differs in one detail: a color or a
shape that other birds have there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from compclip.dataset.sketch.captions import PART_NOUNS, choice, synonym
from compclip.dataset.sketch.world import ATTRIBUTE_KINDS, ATTRIBUTES, Dice, Scene

# The first sentence of every description.
FIRST_SENTENCE = "This is a drawing of a bird."
# Sentences about a part; {a} is an article if the noun takes one.
OPENINGS = ("It has", "One can see", "We see", "You can see", "There {is}")
ONE_PHRASE = tuple(f"{opening} {{a}}{{adjectives}} {{noun}}." for opening in OPENINGS)
# Sentences about a color and a shape, used now and then.
TWO_PHRASES = (
    "It has {a}{color} {noun} that {is} {shape}.",
    "We see {a}{color} {noun} which {is} {shape}.",
    "You can see {a}{shape} {noun} that {is} {color}.",
)

# The order in which parts are described.
ORDER = (
    "bill",
    "eye",
    "crown",
    "head",
    "nape",
    "throat",
    "breast",
    "back",
    "wing",
    "belly",
    "tail",
    "tarsus",
    "foot",
)

# Parts in a short caption, which has about 45 tokens.
SHORT = 6

# How often each value occurs, by attribute (``world.ATTRIBUTES``).
Frequencies = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Sentence:
    """A sentence and its negative, with ``wrong`` instead of ``value``; the opening has only a
    text.
    """

    text: str
    negative: str | None = None
    part: str | None = None
    kind: str | None = None
    value: str | None = None
    wrong: str | None = None


def count_values(scenes: Iterable[Scene]) -> Frequencies:
    """Count the scenes with each value of each attribute; ordinary shapes, which captions omit, are
    not counted.
    """
    counts: dict[str, dict[str, int]] = {
        name: dict.fromkeys(values, 0) for name, values in ATTRIBUTES.items()
    }
    for scene in scenes:
        for name, count in counts.items():
            if (value := scene[name]) is not None:
                count[value] += 1
    return counts


def describe_scene(scene: Scene, frequencies: Frequencies, dice: Dice) -> list[Sentence]:
    """Return the sentences of a description of ``scene``: an opening, then its parts in ``ORDER``.

    Wrong values are drawn by their frequency, so that rarity does not reveal them.
    """
    return [
        Sentence(FIRST_SENTENCE),
        *(_describe_part(part, scene, frequencies, dice) for part in ORDER),
    ]


def shorten(sentences: Sequence[Sentence], dice: Dice) -> str:
    """Return a caption that fits into CLIP's context: ``SHORT`` random sentences about parts, in
    their order.
    """
    texts = [sentence.text for sentence in sentences if sentence.part]
    kept = dice.several(range(len(texts)), [1.0] * len(texts), SHORT)
    return " ".join(texts[place] for place in sorted(kept))


def grow(sentences: Iterable[Sentence]) -> list[tuple[str, str | None]]:
    """Return the description up to each sentence, and the same ending with that sentence's
    negative, if it has one.
    """
    texts, before = list[tuple[str, str | None]](), ""
    for sentence in sentences:
        texts.append((before + sentence.text, sentence.negative and before + sentence.negative))
        before += f"{sentence.text} "
    return texts


def _describe_part(part: str, scene: Scene, frequencies: Frequencies, dice: Dice) -> Sentence:
    values = {
        kind: value
        for kind in ATTRIBUTE_KINDS
        if (value := scene.get(f"{part}:{kind}")) is not None
    }
    kind = dice.pick(list(values))
    others = {
        value: n
        for value, n in frequencies[f"{part}:{kind}"].items()
        if value != values[kind] and n
    }
    # If all birds of the data set have the same value, any other value is used.
    others = others or {value: 1 for value in ATTRIBUTES[f"{part}:{kind}"] if value != values[kind]}
    wrong = dice.weighted(list(others), list(accumulate(others.values())))
    form = dice.pick(TWO_PHRASES if len(values) > 1 and dice.chance(0.15) else ONE_PHRASE)
    noun, plural, _ = choice(dice, PART_NOUNS[part])
    words = {value: synonym(dice, value) for value in (*values.values(), wrong)}
    right, false = (
        _fill(form, {k: words[v] for k, v in stated.items()}, noun, plural)
        for stated in (values, {**values, kind: wrong})
    )
    return Sentence(right, false, part, kind, values[kind], wrong)


def _fill(form: str, words: Mapping[str, str], noun: str, plural: bool) -> str:
    """Fill a sentence with words by kind; shapes precede colors, as in `a long yellow bill`."""
    adjectives = " ".join(words[kind] for kind in reversed(ATTRIBUTE_KINDS) if kind in words)
    given = {"a": "{a}", "adjectives": adjectives, "noun": noun, "is": "are" if plural else "is"}
    sentence = form.format_map({**words, **given})
    next_word = sentence.partition("{a}")[2]
    return sentence.replace("{a}", "" if plural else "an " if next_word[0] in "aeiou" else "a ")
