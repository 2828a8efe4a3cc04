"""Long captions of drawn birds: each sentence is true, each negative has one wrong detail."""

from functools import cache
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from compclip.clip.vision import import_torchvision
from compclip.core import seeds
from compclip.dataset.sketch.captions import NOUNS, SYNONYMS
from compclip.dataset.sketch.description import SHORT, Sentence, count_values, describe, grow, shorten
from compclip.dataset.sketch.world import ATTRIBUTES, PARTS, Dice, Scene, draw_scene, make_world
from compclip.specs.chunks import Chunker

WORLD = make_world(0, 40)
SEEDS = st.integers(0, 2**32)


@cache
def scenes() -> tuple[Scene, ...]:
    dice = Dice(seeds.rng(3, "scenes"))
    return tuple(draw_scene(WORLD, number % 40, dice) for number in range(400))


def write(seed: int) -> tuple[Scene, list[Sentence]]:
    dice = Dice(seeds.rng(seed, "test"))
    scene = draw_scene(WORLD, dice.pick(range(40)), dice)
    return scene, describe(scene, count_values(scenes()), dice)


def words_of(value: str) -> set[str]:
    return {word for word, _ in SYNONYMS.get(value, ((value, 1),))}


def said(text: str) -> list[str]:
    """The words of a sentence without its articles, which follow the word behind them."""
    return [word for word in text.rstrip(".").split() if word not in ("a", "an")]


@given(SEEDS)
def test_every_part_is_described_once_and_truly(seed: int) -> None:
    scene, sentences = write(seed)
    assert sentences[0].negative is None and sentences[0].part is None
    assert sorted(s.part for s in sentences[1:]) == sorted(PARTS)
    for sentence in sentences[1:]:
        words = set(said(sentence.text))
        assert any(set(noun.split()) <= words for noun, _, _ in NOUNS[sentence.part])
        for kind in ("color", "shape"):
            value = scene.get(f"{sentence.part}:{kind}")
            assert value is None or len(words & words_of(value)) == 1, (sentence, value)
        # Nothing else is said of it.
        told = [v for v in scenes_values(sentence.part) if words & words_of(v)]
        assert set(told) <= {scene[f"{sentence.part}:color"], scene.get(f"{sentence.part}:shape")}, sentence


def scenes_values(part: str) -> list[str]:
    return [value for name, values in ATTRIBUTES.items() if name.startswith(f"{part}:") for value in values]


@given(SEEDS)
def test_a_negative_has_one_wrong_word(seed: int) -> None:
    scene, sentences = write(seed)
    for sentence in sentences[1:]:
        name = f"{sentence.part}:{sentence.kind}"
        assert scene[name] == sentence.value != sentence.wrong
        assert sentence.wrong in ATTRIBUTES[name]
        true, false = said(sentence.text), said(sentence.negative)
        (changed,) = [pair for pair in zip(true, false, strict=True) if pair[0] != pair[1]]
        assert changed[0] in words_of(sentence.value) and changed[1] in words_of(sentence.wrong)
        for text in (sentence.text, sentence.negative):
            for article, word in pairwise(text.split()):
                if article in ("a", "an"):
                    assert (word[0] in "aeiou") == (article == "an"), text


@given(SEEDS)
def test_a_description_exceeds_clips_context_and_a_short_caption_does_not(seed: int) -> None:
    import_torchvision()
    import open_clip

    _, sentences = write(seed)
    texts = grow(sentences)
    assert len(texts) == 1 + len(PARTS)
    for (before, _), (text, negative) in pairwise(texts):
        assert text.startswith(f"{before} ") and negative.startswith(f"{before} ") and text != negative
    dice = Dice(seeds.rng(seed, "short"))
    short = shorten(sentences, dice)
    assert short.count(".") == SHORT and all(f"{s}." in texts[-1][0] for s in short.removesuffix(".").split(". "))
    ids = open_clip.SimpleTokenizer(context_length=248)([texts[-1][0], short])
    assert 77 < int((ids[0] != 0).sum()) <= 248 and int((ids[1] != 0).sum()) <= 77


def test_wrong_values_follow_their_frequency() -> None:
    frequencies = count_values(scenes())
    assert all(sum(count.values()) == 400 for name, count in frequencies.items() if name.endswith("color"))
    expected, found = 0.0, 0
    for seed in range(400):
        _, sentences = write(seed)
        for s in sentences[1:]:
            counts = frequencies[f"{s.part}:{s.kind}"]
            best = max((v for v in counts if v != s.value), key=lambda v: (counts[v], v))
            expected += counts[best] / (sum(counts.values()) - counts[s.value])
            found += s.wrong == best
    # Five standard errors of so many draws.
    assert abs(found - expected) < 5 * (expected * (1 - expected / 5200)) ** 0.5


def test_each_phrase_describes_a_part() -> None:
    """Of chunks as training cuts them, none ends behind a bare subject: `the bird`, `its bill`."""
    chunker = Chunker("en_core_web_sm")
    values = {word for name in ATTRIBUTES for value in ATTRIBUTES[name] for word in words_of(value)}
    texts = [write(seed)[1] for seed in range(40)]
    for sentences, ends in zip(texts, chunker.cut([" ".join(s.text for s in t) for t in texts]), strict=True):
        text = " ".join(s.text for s in sentences)
        chunks = [text[a:b] for a, b in pairwise([0, *ends])]
        assert all(values & set(said(chunk)) for chunk in chunks[1:]), chunks
