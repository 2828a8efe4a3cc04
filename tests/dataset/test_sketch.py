"""Drawn birds: short and long captions are true, what they say is visible, and pairs have intended
frequencies.
"""

import io
import itertools
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from compclip.clip.vision import import_torchvision
from compclip.core import seeds
from compclip.dataset.sketch.captions import FACTS, PART_NOUNS, SYNONYMS, caption_scene
from compclip.dataset.sketch.description import (
    SHORT,
    Sentence,
    count_values,
    describe_scene,
    grow,
    shorten,
)
from compclip.dataset.sketch.draw import Pose, draw_pose, paint_scene, png
from compclip.dataset.sketch.world import (
    ATTRIBUTE_KINDS,
    ATTRIBUTES,
    PART_SHAPES,
    PARTS,
    SKETCH_COLORS,
    Dice,
    Scene,
    draw_scene,
    make_world,
)
from compclip.dataset.sources.sketch import Settings, load
from compclip.text.lexicon import Lexicon, load_lexicon
from tests.conftest import ROOT

# Two pictures differ visibly in a pixel where its colors are this far apart (of 441, black to
# white).
APART = 40
# And two values of a part do, where at least so many pixels of 9,216 differ. The least parts are a
# small foot and a small eye; the closest pair of shapes is a small and a thin eye.
COLOR_PIXELS = 16
SHAPE_PIXELS = 24

WORLD = make_world(0, 40)
SEEDS = st.integers(0, 2**32)


@cache
def lexicon(kind: str) -> Lexicon:
    folder = ROOT / "lexicons"
    return load_lexicon(
        folder / "nouns" / "birds.yaml"
        if kind == "noun"
        else folder / "adjectives" / f"{kind}.yaml"
    )


def bird(*keys: int) -> tuple[Scene, Pose, Dice]:
    dice = Dice(seeds.rng(1, "test", *keys))
    return draw_scene(WORLD, dice.pick(range(40)), dice), draw_pose(dice), dice


def differing(a: Image.Image, b: Image.Image) -> int:
    """Pixels in which two pictures differ visibly."""
    return int((np.linalg.norm(np.asarray(a, int) - np.asarray(b, int), axis=2) > APART).sum())


def poses() -> list[tuple[Scene, Pose]]:
    """Birds in poses of every kind, the extremes among them."""
    found = [bird(n)[:2] for n in range(6)]
    corners = itertools.product((False, True), (0.86, 0.98), (-7.0, 7.0), (-2.0, 2.0))
    for n, (flip, scale, angle, shift) in enumerate(corners):
        scene, pose, _ = bird(100 + n)
        found.append(
            (
                scene,
                replace(pose, flip=flip, scale=scale, angle=angle, shift_x=shift, shift_y=-shift),
            )
        )
    return found


def test_words_are_in_the_lexicons() -> None:
    nouns = lexicon("noun")
    for part, forms in PART_NOUNS.items():
        assert {nouns.forms[noun] for noun, _, _ in forms} == {part}
    for kind in ATTRIBUTE_KINDS:
        forms = lexicon(kind).forms
        values = {
            v for attribute, known in ATTRIBUTES.items() if attribute.endswith(kind) for v in known
        }
        for value in values:
            assert {forms.get(word) for word in words_of(value)} == {value}


def test_png_is_lossless_and_rgb() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    for picture in (paint_scene(*bird(0)[:2]), Image.fromarray(noise)):
        content = png(picture)
        assert png(picture) == content
        file = Image.open(io.BytesIO(content))
        assert file.mode == "RGB"
        np.testing.assert_array_equal(np.array(file), np.array(picture))


@pytest.mark.parametrize("part", PARTS)
def test_any_two_shapes_and_colors_of_a_part_differ_visibly_in_every_pose(part: str) -> None:
    shapes = (None, *PART_SHAPES.get(part, ()))
    for (scene, pose), shape in zip(poses(), itertools.cycle(shapes), strict=False):
        drawn = {value: paint_scene({**scene, f"{part}:shape": value}, pose) for value in shapes}
        for a, b in itertools.combinations(shapes, 2):
            assert differing(drawn[a], drawn[b]) >= SHAPE_PIXELS, (a, b, pose)
        scene = {**scene, f"{part}:shape": shape} if part in PART_SHAPES else scene
        drawn = {
            color: paint_scene({**scene, f"{part}:color": color}, pose) for color in SKETCH_COLORS
        }
        for a, b in itertools.combinations(SKETCH_COLORS, 2):
            assert differing(drawn[a], drawn[b]) >= COLOR_PIXELS, (shape, a, b, pose)


@pytest.mark.parametrize(
    "hidden", ["belly:large", "belly:pointed", "wing:wide", "bill:thick", "crown:flat", "eye:large"]
)
def test_no_shape_hides_another_part(hidden: str) -> None:
    part, shape = hidden.split(":")
    for n in range(4):
        scene, pose, _ = bird(200 + n)
        scene[f"{part}:shape"] = shape
        for other in PARTS:
            a, b = (
                paint_scene({**scene, f"{other}:color": color}, pose)
                for color in ("white", "black")
            )
            assert differing(a, b) >= COLOR_PIXELS, other


@settings(max_examples=150)
@given(SEEDS)
def test_captions_state_their_facts_and_nothing_else(seed: int) -> None:
    scene, _, dice = bird(seed)
    caption = caption_scene(scene, dice)
    forms = {kind: lexicon(kind).forms for kind in ATTRIBUTE_KINDS}
    assert caption.text == " ".join(caption.text.lower().split())
    assert len(caption.facts) <= max(FACTS[0])
    for fact in caption.facts:
        assert scene[f"{fact.part}:{fact.kind}"] == fact.value
        assert forms[fact.kind][caption.text[fact.start : fact.end]] == fact.value
        nouns = {noun for noun, _, _ in PART_NOUNS[fact.part]}
        assert nouns & set(caption.text.replace(",", "").split())
    # No adjective says anything that is not a fact, and no attribute is stated twice.
    stated = [
        word
        for word in caption.text.replace(",", "").split()
        if any(word in known for known in forms.values())
    ]
    assert len(stated) == len({fact.start for fact in caption.facts})
    assert len({(fact.part, fact.kind) for fact in caption.facts}) == len(caption.facts)


def test_scenes_have_known_values_in_the_intended_fractions() -> None:
    scenes = [draw_scene(WORLD, n % 40, Dice(seeds.rng(2, n))) for n in range(4000)]
    for attribute, known in ATTRIBUTES.items():
        values = [scene[attribute] for scene in scenes]
        assert set(values) <= {*known, None} and (None in values) == attribute.endswith(":shape")
        # A species' habit changes a fraction by 70 % of a fortieth.
        expected = np.diff(WORLD.cumulative[attribute], prepend=0)
        assert expected.sum() == pytest.approx(1) and (expected > 0).all()
        found = [np.mean([v == value for v in values]) for value in WORLD.values[attribute]]
        assert found == pytest.approx(expected, abs=0.05)
    # Held-out pairs leave most images to train.
    for seed in (0, 1):
        world, dice = make_world(seed, 80), [Dice(seeds.rng(seed, n)) for n in range(1200)]
        scenes = [draw_scene(world, n % 80, dice[n]) for n in range(1200)]
        captions = [[caption_scene(scenes[n], dice[n]) for _ in range(10)] for n in range(1200)]
        said = [
            (n, f.kind, f"{f.value}_{f.part}")
            for n in range(1200)
            for c in captions[n]
            for f in c.facts
        ]
        for kind, facts in pd.DataFrame(said, columns=["image", "kind", "pair"]).groupby("kind"):
            ranking = facts["pair"].value_counts().index
            middle = ranking[
                [25 <= 100 * (i + 0.5) / len(ranking) <= 75 for i in range(len(ranking))]
            ]
            fractions = []
            for draw in range(20):
                held = np.random.default_rng(draw).choice(
                    middle, int(0.1 * len(ranking) + 0.5), replace=False
                )
                fractions.append(facts.loc[facts["pair"].isin(held), "image"].nunique() / 1200)
            # test_seen takes at most 12 % more.
            assert 0.12 <= np.median(fractions) <= 0.3 and max(fractions) <= 0.38, (kind, fractions)


def drawn(
    folder: Path, seed: int = 0, limit: int | None = None, processes: int = 1
) -> tuple[pd.DataFrame, ...]:
    """Captions, images, scenes, facts, captions of wild birds and the summary."""
    folder.mkdir()
    settings = Settings(images=70, species=4, pretraining=0.1)
    loaded = load(
        settings, seed=seed, limit=limit, folder=folder, cache=folder, processes=processes
    )
    return loaded.captions, loaded.images, *loaded.tables.values(), pd.DataFrame([loaded.summary])


def test_tables_are_true_and_depend_on_the_seed_alone(tmp_path: Path) -> None:
    """The same seed gives the same bytes in any number of processes."""
    one, two, other = (
        drawn(tmp_path / name, *how) for name, *how in (("a", 0), ("b", 0, None, 2), ("c", 1))
    )
    for a, b in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(a, b)
    files = sorted(str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*.png"))
    assert set(one[4]["path"]) < set(files) and len(files) == 77  # and 7 wild birds
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).read_bytes() != (tmp_path / "c" / name).read_bytes()
    assert not one[0]["text"].equals(other[0]["text"])
    whole, part = one[:4], drawn(tmp_path / "part", limit=8)[:4]
    captions, images, scenes, facts = whole
    assert set(captions.groupby("image_id").size()) == {10} and list(scenes["image_id"]) == list(
        images["image_id"]
    )
    assert all(Image.open(tmp_path / "a" / path).size == (96, 96) for path in images["path"])
    true = scenes.set_index("image_id")
    assert all(true.loc[f.image_id, f"{f.part}:{f.kind}"] == f.value for f in facts.itertuples())
    assert len(part[1]) == 8 and part[0]["class_id"].nunique() == 4
    for a, b in zip(whole, part, strict=True):
        pd.testing.assert_frame_equal(
            a[a["image_id"].isin(part[1]["image_id"])].reset_index(drop=True), b
        )


@cache
def scenes() -> tuple[Scene, ...]:
    dice = Dice(seeds.rng(3, "scenes"))
    return tuple(draw_scene(WORLD, number % 40, dice) for number in range(400))


def write(seed: int) -> tuple[Scene, list[Sentence]]:
    scene, _, dice = bird(seed)
    return scene, describe_scene(scene, count_values(scenes()), dice)


def words_of(value: str) -> set[str]:
    return {word for word, _ in SYNONYMS.get(value, ((value, 1),))}


def said(text: str) -> list[str]:
    """The words of a sentence without its articles, which follow the word behind them."""
    return [word for word in text.rstrip(".").split() if word not in ("a", "an")]


@given(SEEDS)
def test_every_part_is_described_truly_and_its_negative_wrongly(seed: int) -> None:
    scene, sentences = write(seed)
    assert sentences[0].negative is None and sentences[0].part is None
    assert sorted(s.part for s in sentences[1:]) == sorted(PARTS)
    for sentence in sentences[1:]:
        words = set(said(sentence.text))
        assert any(set(noun.split()) <= words for noun, _, _ in PART_NOUNS[sentence.part])
        for kind in ("color", "shape"):
            value = scene.get(f"{sentence.part}:{kind}")
            assert value is None or len(words & words_of(value)) == 1, (sentence, value)
        # No other value is stated.
        values = {
            v
            for name, values in ATTRIBUTES.items()
            if name.startswith(f"{sentence.part}:")
            for v in values
        }
        told = {value for value in values if words & words_of(value)}
        assert told <= {scene[f"{sentence.part}:color"], scene.get(f"{sentence.part}:shape")}, (
            sentence
        )
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
        assert (
            text.startswith(f"{before} ") and negative.startswith(f"{before} ") and text != negative
        )
    dice = Dice(seeds.rng(seed, "short"))
    short = shorten(sentences, dice)
    assert short.count(".") == SHORT and all(
        f"{s}." in texts[-1][0] for s in short.removesuffix(".").split(". ")
    )
    ids = open_clip.SimpleTokenizer(context_length=248)([texts[-1][0], short])
    assert 77 < int((ids[0] != 0).sum()) <= 248 and int((ids[1] != 0).sum()) <= 77


def test_wrong_values_follow_their_frequency() -> None:
    frequencies = count_values(scenes())
    assert all(
        sum(count.values()) == 400 for name, count in frequencies.items() if name.endswith("color")
    )
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
