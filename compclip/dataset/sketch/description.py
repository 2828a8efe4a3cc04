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
    # With zeros, so that the values keep their order, by which wrong ones are drawn.
    counts = {name: dict.fromkeys(values, 0) for name, values in ATTRIBUTES.items()}
    for scene in scenes:
        for name, count in counts.items():
            value = scene[name]
            if value is not None:
                count[value] += 1
    return counts


def describe_scene(scene: Scene, frequencies: Frequencies, dice: Dice) -> list[Sentence]:
    """Return the sentences of a description of ``scene``: an opening, then its parts in ``ORDER``.

    Wrong values are drawn by their frequency, so that rarity does not reveal them.
    """
    sentences = [_describe_part(part, scene, frequencies, dice) for part in ORDER]
    return [Sentence(FIRST_SENTENCE), *sentences]


def shorten(sentences: Sequence[Sentence], dice: Dice) -> str:
    """Return a caption that fits into CLIP's context: ``SHORT`` random sentences about parts, in
    their order.
    """
    texts = [sentence.text for sentence in sentences if sentence.part]
    chosen = dice.several(range(len(texts)), [1.0] * len(texts), SHORT)
    return " ".join(texts[index] for index in sorted(chosen))


def grow(sentences: Iterable[Sentence]) -> list[tuple[str, str | None]]:
    """Return the description up to each sentence, and the same ending with that sentence's
    negative, if it has one.
    """
    descriptions = []
    beginning = ""
    for sentence in sentences:
        negative = None
        if sentence.negative:
            negative = beginning + sentence.negative
        descriptions.append((beginning + sentence.text, negative))
        beginning += f"{sentence.text} "
    return descriptions


def _wrong_value(attribute: str, value: str, frequencies: Frequencies, dice: Dice) -> str:
    """Draw another value than ``value`` by its frequency."""
    weights = {
        wrong: count for wrong, count in frequencies[attribute].items() if wrong != value and count
    }
    if not weights:
        # All birds of the data set have the same value, so any other value is used.
        weights = {wrong: 1 for wrong in ATTRIBUTES[attribute] if wrong != value}
    cumulative = list(accumulate(weights.values()))
    return dice.weighted(list(weights), cumulative)


def _describe_part(part: str, scene: Scene, frequencies: Frequencies, dice: Dice) -> Sentence:
    values = {}
    for kind in ATTRIBUTE_KINDS:
        value = scene.get(f"{part}:{kind}")
        if value is not None:
            values[kind] = value
    kind = dice.pick(list(values))
    wrong = _wrong_value(f"{part}:{kind}", values[kind], frequencies, dice)
    has_two_phrases = len(values) > 1 and dice.chance(0.15)
    form = dice.pick(TWO_PHRASES if has_two_phrases else ONE_PHRASE)
    noun, is_plural, _ = choice(dice, PART_NOUNS[part])
    # One synonym a value, so that the two sentences differ in one word alone.
    words = {value: synonym(dice, value) for value in (*values.values(), wrong)}
    true_words = {kind: words[value] for kind, value in values.items()}
    false_words = {**true_words, kind: words[wrong]}
    text = _fill(form, true_words, noun, is_plural)
    # The same form, noun and synonyms, so that only the detail tells them apart.
    negative = _fill(form, false_words, noun, is_plural)
    return Sentence(text, negative, part, kind, values[kind], wrong)


def _fill(form: str, words: Mapping[str, str], noun: str, is_plural: bool) -> str:
    """Fill a sentence with words by kind; shapes precede colors, as in `a long yellow bill`."""
    adjectives = " ".join(words[kind] for kind in reversed(ATTRIBUTE_KINDS) if kind in words)
    verb = "are" if is_plural else "is"
    # The article stays a field, because it depends on the word that follows it.
    sentence = form.format_map(
        {**words, "a": "{a}", "adjectives": adjectives, "noun": noun, "is": verb}
    )
    if is_plural:
        return sentence.replace("{a}", "")
    next_word = sentence.partition("{a}")[2]
    return sentence.replace("{a}", "an " if next_word[0] in "aeiou" else "a ")
