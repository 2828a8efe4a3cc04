"""Drawn compounds: pictures that can be told apart, captions that are true, and trainings that differ in one thing."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workflow_scripts.clip.prompts import open_clip_metadata
from workflow_scripts.clip.tokens import WORD, clean, make_vocabulary
from workflow_scripts.compun import draw_compounds as step
from workflow_scripts.compun.config import TRAININGS, Compounds, Drawn
from workflow_scripts.compun.drawn import texts, world
from workflow_scripts.compun.drawn.paint import GROUNDS, paint
from workflow_scripts.compun.drawn.things import THINGS
from workflow_scripts.compun.drawn.world import COLORS, NOUNS, PATTERNS, PLACES, PLAIN, Scene, Thing
from workflow_scripts.compun.load_compounds import load
from workflow_scripts.compun.prompts import compound_prompts
from workflow_scripts.compun.steps import DrawCompounds
from workflow_scripts.compun.texts import KINDS, mentions, read_given
from workflow_scripts.core import seeds, tables
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.dataset.sketch.draw import RGB
from workflow_scripts.dataset.sketch.world import Dice

WORDS_OF = {"striped": {"striped", "stripes"}, "dotted": {"dotted", "dots"}, "checked": {"checked", "checks"}}
SMALL = {"tested": 24, "others": 12, "things": 300, "pairs": 60, "each": 3}


def dice(*keys: int | str) -> Dice:
    return Dice(seeds.rng(0, "test", *keys))


def pixels(thing: Thing, place: str = "stone", key: int = 0) -> np.ndarray:
    return np.asarray(paint(Scene((thing,), place), dice(key))).astype(int)


def words_of(text: str) -> set[str]:
    return set(WORD.findall(clean(text)))


def is_true(text: str, scene: Scene) -> bool:
    """Every noun, color, pattern and place of ``text`` is in the scene."""
    said = words_of(text)
    nouns = {thing.noun for thing in scene.things}
    colors = {thing.color for thing in scene.things}
    patterns = {thing.pattern for thing in scene.things}
    wrong = (said & set(NOUNS)) - nouns | (said & set(COLORS)) - colors | (said & set(PLACES)) - {scene.place}
    return not wrong and all(not said & words or name in patterns for name, words in WORDS_OF.items())


def run(folder: Path, seed: int = 0) -> Path:
    place = folder / "d" / "compun" / "drawn"
    step.main(DrawCompounds(drawn=Drawn(**SMALL), seed=seed, results=folder, folder=place))
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("drawn"))


# Pictures


def test_things_differ_by_their_silhouettes() -> None:
    """Even where the outlines are averaged over poses, no two things cover the same ground."""
    shapes = {}
    for noun in NOUNS:
        masks = [np.abs(pixels(Thing(noun, "red", PLAIN), "snow", n) - RGB["red"]).sum(axis=2) < 90 for n in range(12)]
        shapes[noun] = np.mean(masks, axis=0)
        assert 0.04 < shapes[noun].mean() < 0.6
    for one, other in combinations(NOUNS, 2):
        common = np.minimum(shapes[one], shapes[other]).sum() / np.maximum(shapes[one], shapes[other]).sum()
        assert common < 0.9, (one, other)


@pytest.mark.parametrize("color", COLORS)
def test_a_plain_thing_has_its_color(color: str) -> None:
    picture = pixels(Thing("box", color, PLAIN), "snow")
    inside = picture[24:40, 24:40].reshape(-1, 3)
    distance = {name: np.abs(np.median(inside, axis=0) - RGB[name]).sum() for name in COLORS}
    assert min(distance, key=distance.get) == color


def test_patterns_are_seen() -> None:
    """Plain is one color inside; each pattern has two, and as much of the second as tells it from the others."""
    second = {}
    for pattern in (PLAIN, *PATTERNS):
        shares = []
        for key in range(8):
            inside = pixels(Thing("box", "red", pattern), key=key)[22:42, 22:42].reshape(-1, 3)
            shares.append((inside.min(axis=1) > 150).mean())
        second[pattern] = np.mean(shares)
    assert second[PLAIN] == 0 and 0.1 < second["dotted"] < 0.4 < second["striped"] < 0.6
    assert 0.4 < second["checked"] < 0.6


def test_places_have_grounds_of_their_own() -> None:
    assert tuple(GROUNDS) == tuple(texts.AT) == PLACES
    corners = {name: pixels(Thing("star", "red", PLAIN), name)[0, 0] for name in PLACES}
    assert min(np.abs(corners[a] - corners[b]).sum() for a, b in combinations(PLACES, 2)) > 40


def test_both_things_of_a_picture_are_seen_apart() -> None:
    scene = Scene((Thing("box", "red", PLAIN), Thing("ring", "blue", PLAIN)), "snow")
    sides = []
    for key in range(10):
        picture = np.asarray(paint(scene, dice(key))).astype(int)
        columns = {c: np.flatnonzero((np.abs(picture - RGB[c]).sum(axis=2) < 90).any(axis=0)) for c in ("red", "blue")}
        left, right = sorted(columns.values(), key=np.mean)
        assert left.max() < right.min()
        sides.append(columns["red"].mean() < 32)
    assert {True, False} == set(sides)


# Compounds


def test_compounds_are_of_the_three_kinds() -> None:
    compounds = world.draw_compounds(3, 90)
    assert len({frozenset((c.first, c.second)) for c in compounds}) == len({c.name for c in compounds}) == 90
    for kind in tables.NOUNS_SEEN:
        own = [c for c in compounds if c.kind == kind]
        assert len(own) == 30 and sum(" " in c.name for c in own) == 15
    for c in compounds:
        assert c.name.replace(" ", "") == c.first + c.second and c.name not in NOUNS
        shown = [thing.noun for thing in c.things]
        if c.kind == "both":
            assert shown == [c.first, c.second] and len({thing.color for thing in c.things}) == 2
        elif c.kind == "either":
            assert len(shown) == 1 and shown[0] in (c.first, c.second) and c.things[0].pattern != PLAIN
        else:
            assert len(shown) == 1 and shown[0] not in (c.first, c.second)
        for noun, scene in zip((c.first, c.second), step.distractors(c, dice(c.name)), strict=True):
            (alone,) = scene.things
            assert alone.noun == noun and alone.pattern == PLAIN and alone.color not in {t.color for t in c.things}


def test_there_are_no_more_compounds_than_pairs_of_nouns() -> None:
    pairs = len(THINGS) * (len(THINGS) - 1) // 2
    assert len(world.draw_compounds(0, pairs)) == pairs
    with pytest.raises(UserError, match=f"{pairs + 1} compounds: {len(THINGS)} nouns make only {pairs} pairs"):
        world.draw_compounds(0, pairs + 1)


# Texts


def test_captions_are_true() -> None:
    told = 0
    for index, compound in enumerate(world.draw_compounds(1, 60)):
        scene = world.draw_scene(compound.things, dice("scene", index))
        for number in range(8):
            text = texts.write_caption(scene, compound, dice(index, number))
            told += bool(words_of(text) & set(COLORS))
            # Of its name, a compound's picture may show nothing.
            assert is_true(text.replace(compound.name, "").replace("black and white", ""), scene), text
            assert not re.search(r"\b(a|an|the) (a|an|the)\b|\b(a (?!origami)[aeiou]|an [^aeiou])", text), text
    assert told > 100


def test_example_captions_and_descriptions_are_true_and_name_what_is_seen() -> None:
    for compound in world.draw_compounds(2, 60):
        captions = texts.write_examples(compound, dice(compound.name))
        assert len(set(captions)) == texts.CAPTIONS
        for text in captions:
            assert mentions(text, compound.name) and text[0].isupper() and text.endswith(".")
            rest = re.sub(rf"\b{compound.name}\b", "", text, flags=re.IGNORECASE)
            assert any(is_true(rest, Scene(compound.things, at)) for at in PLACES), text
            assert words_of(rest) & {thing.noun for thing in compound.things}
        for text in texts.write_descriptions(compound):
            assert is_true(text, Scene(compound.things, PLACES[0])) and not mentions(text, compound.name)


def test_every_word_of_a_prompt_is_known_to_the_small_clip(place: Path) -> None:
    """But for compounds written as one word, which the untaught one has not met."""
    captions = read_table(place / "training" / "captions.parquet", tables.CAPTIONS)
    untaught = read_table(place / "training" / "untaught.parquet", tables.SPLIT).query("split == 'train'")
    known = set(make_vocabulary(captions.loc[captions["image_id"].isin(untaught["image_id"]), "text"]))
    listed = pd.read_csv(place / "list.csv")
    templates = [template("{}") for template in open_clip_metadata().SIMPLE_IMAGENET_TEMPLATES]
    given = {kind: read_json(place / f"{kind}.json") for kind in ("captions", "descriptions")}
    prompts, lacking = compound_prompts(listed, given["captions"], given["descriptions"], 7, templates)
    assert not any(lacking.values())
    everything = {w for own in prompts.values() for e in own.values() for t in e for x in t for w in words_of(x)}
    one_word = {name for name in listed["compound"] if " " not in name}
    assert everything - known == one_word and len(one_word) == 12
    # Names that occur once train the word that stands for unknown ones.
    assert len({w for text in captions["text"] for w in words_of(text)}) > len(known)


# The step


def test_the_step_writes_what_the_others_read(place: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    origin = Compounds(file=str(place / "list.csv"), images=str(place / "images"))
    compounds, images, summary = load(origin, folder=tmp_path / "images", cache=tmp_path)
    assert summary["complete"] == summary["compounds"] == 24 and summary["images"] == 72
    assert summary["kinds"] == dict.fromkeys(tables.NOUNS_SEEN, 8) and summary["two_spellings"]["count"] == 0
    assert images["path"].notna().all()
    for kind in ("captions", "descriptions"):
        given = read_given(place / f"{kind}.json", compounds["compound"].tolist(), KINDS[kind], 1)
        assert len(given.texts) == 24 and not given.unused and given.repeated == given.beyond == 0


def test_the_trainings_differ_by_the_tested_compounds(place: Path) -> None:
    captions = read_table(place / "training" / "captions.parquet", tables.CAPTIONS)
    images = read_table(place / "training" / "images.parquet", tables.IMAGES).set_index("image_id")["path"]
    splits = {name: read_table(place / "training" / f"{name}.parquet", tables.SPLIT) for name in TRAININGS}
    trained = {name: set(table.query("split == 'train'")["image_id"]) for name, table in splits.items()}
    watched = {frozenset(table.query("split == 'test_seen'")["image_id"]) for table in splits.values()}
    assert len(watched) == 1 and len(next(iter(watched))) == step.WATCHED
    assert len(trained["untaught"]) == 300 + 60 + 12 * 3 and trained["untaught"] < trained["taught"]
    extra = captions[captions["image_id"].isin(trained["taught"] - trained["untaught"])]
    assert extra["image_id"].nunique() == 24 * 3
    tested = pd.read_csv(place / "list.csv")
    untaught = captions[captions["image_id"].isin(trained["untaught"])]["text"].tolist()
    for row in tested.itertuples():
        assert not any(row.compound in text for text in untaught)
        # Nor do the two stand together without the name.
        assert not any({row.first, row.second} <= words_of(text) for text in untaught)
        assert extra["text"].str.contains(row.compound).any()
    root = place.parents[2]
    assert all((root / path).is_file() for path in images)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_same_seed_the_same_bytes(place: Path, tmp_path: Path) -> None:
    again = run(tmp_path)
    one, other = (contents(folder) for folder in (place, again))
    assert len(one) > 500 and one == other
    assert (run(tmp_path / "other", 1) / "list.csv").read_bytes() != one["list.csv"]
