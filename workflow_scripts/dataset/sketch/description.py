"""Long captions of a scene: every part of the bird, a sentence each, and beside each sentence a wrong one.

A description grows sentence by sentence, and each adds what is true of the bird. A sentence's negative differs from
it in one detail: a color or a shape that other birds have there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from workflow_scripts.dataset.sketch.captions import NOUNS, SYNONYMS
from workflow_scripts.dataset.sketch.world import ATTRIBUTES, KINDS, Dice, Scene

# What a description begins with, true of every bird.
OPENING = "This is a drawing of a bird."
# What is said of a part, in phrases each of which says something of it; {a} is an article where the noun takes one.
ONE_PHRASE = (
    "It has {a}{adjectives} {noun}.",
    "One can see {a}{adjectives} {noun}.",
    "We see {a}{adjectives} {noun}.",
    "You can see {a}{adjectives} {noun}.",
    "There {is} {a}{adjectives} {noun}.",
)
# Of a color and a shape, now and then.
TWO_PHRASES = (
    "It has {a}{color} {noun} that {is} {shape}.",
    "We see {a}{color} {noun} which {is} {shape}.",
    "You can see {a}{shape} {noun} that {is} {color}.",
)

# The order in which a bird is gone through, from its bill to its feet.
ORDER = (
    "bill", "eye", "crown", "head", "nape", "throat", "breast", "back", "wing", "belly", "tail", "tarsus", "foot",
)  # fmt: skip

# How many parts a short caption tells of: some 45 tokens.
SHORT = 6

# How often each value occurs, by attribute (``world.ATTRIBUTES``).
Frequencies = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Sentence:
    """A sentence and its negative, which says ``wrong`` where the bird's ``part`` has ``value``.

    The opening has no negative, and says nothing of any part.
    """

    text: str
    negative: str | None = None
    part: str | None = None
    kind: str | None = None
    value: str | None = None
    wrong: str | None = None


def count_values(scenes: Iterable[Scene]) -> Frequencies:
    """How many of ``scenes`` have each value of each attribute; of ordinary shapes no caption tells."""
    counts: dict[str, dict[str, int]] = {name: dict.fromkeys(values, 0) for name, values in ATTRIBUTES.items()}
    for scene in scenes:
        for name, count in counts.items():
            if (value := scene[name]) is not None:
                count[value] += 1
    return counts


def describe(scene: Scene, frequencies: Frequencies, dice: Dice) -> list[Sentence]:
    """The sentences of a description of ``scene``: an opening, then its parts in ``ORDER``.

    A wrong value is drawn as often as birds have it: by chance, and not for being rare, is it out of place.
    """
    return [Sentence(OPENING), *(_describe_part(part, scene, frequencies, dice) for part in ORDER)]


def shorten(sentences: Sequence[Sentence], dice: Dice) -> str:
    """A caption that CLIP can read: ``SHORT`` of a description's sentences on parts, drawn anew, in their order."""
    told = [sentence.text for sentence in sentences if sentence.part]
    kept = dice.several(range(len(told)), [1.0] * len(told), SHORT)
    return " ".join(told[place] for place in sorted(kept))


def grow(sentences: Iterable[Sentence]) -> list[tuple[str, str | None]]:
    """The description up to each sentence, and the same with that sentence's negative for its last, None for none."""
    texts: list[tuple[str, str | None]] = []
    said = ""
    for sentence in sentences:
        texts.append((said + sentence.text, sentence.negative and said + sentence.negative))
        said += f"{sentence.text} "
    return texts


def _describe_part(part: str, scene: Scene, frequencies: Frequencies, dice: Dice) -> Sentence:
    values = {kind: value for kind in KINDS if (value := scene.get(f"{part}:{kind}")) is not None}
    kind = dice.pick(list(values))
    others = {value: n for value, n in frequencies[f"{part}:{kind}"].items() if value != values[kind] and n}
    # Where no bird of the data set has another value, any other is wrong.
    others = others or {value: 1 for value in ATTRIBUTES[f"{part}:{kind}"] if value != values[kind]}
    wrong = dice.weighted(list(others), list(accumulate(others.values())))
    forms = TWO_PHRASES if len(values) > 1 and dice.chance(0.15) else ONE_PHRASE
    form = dice.pick(forms)
    options = NOUNS[part]
    noun, plural, _ = dice.weighted(options, list(accumulate(weight for *_, weight in options)))
    words = {value: _word(value, dice) for value in (*values.values(), wrong)}
    right, false = (
        _fill(form, {k: words[v] for k, v in some.items()}, noun, plural) for some in (values, {**values, kind: wrong})
    )
    return Sentence(right, false, part, kind, values[kind], wrong)


def _word(value: str, dice: Dice) -> str:
    options = SYNONYMS.get(value, ((value, 1),))
    return dice.weighted(options, list(accumulate(weight for _, weight in options)))[0]


def _fill(form: str, words: Mapping[str, str], noun: str, plural: bool) -> str:
    """words: by kind; shapes stand before colors, a long yellow bill."""
    adjectives = " ".join(words[kind] for kind in reversed(KINDS) if kind in words)
    said = form.format_map(
        {**words, "a": "{a}", "adjectives": adjectives, "noun": noun, "is": "are" if plural else "is"}
    )
    follower = said.partition("{a}")[2]
    return said.replace("{a}", "" if plural else "an " if follower[0] in "aeiou" else "a ")
