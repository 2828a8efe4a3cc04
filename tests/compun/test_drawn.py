"""Drawn compounds: pictures that can be told apart, true captions, and what CLIPs show that are
trained on them.
"""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compclip.clip.tokens import WORD, clean, make_vocabulary
from compclip.compun import draw_compounds as library
from compclip.compun.compun_view import read_analysis
from compclip.compun.config import TRAININGS
from compclip.compun.draw_compounds import NO_PATTERN, PATTERNS, THING_COLORS, THING_NOUNS, Thing
from compclip.compun.load_compounds import name_letters
from compclip.compun.prompts import compound_prompts, read_texts
from compclip.core import seeds, tables
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.dataset.sketch.draw import RGB
from compclip.dataset.sketch.world import Dice


def dice(*keys: int | str) -> Dice:
    return Dice(seeds.rng(0, "test", *keys))


def pixels(*things: Thing, key: int = 0) -> np.ndarray:
    return np.asarray(library.paint_things(things, dice(key))).astype(int)


def words_of(text: str) -> set[str]:
    return set(WORD.findall(clean(text)))


def is_true(text: str, things: tuple[Thing, ...]) -> bool:
    """Every noun, color and pattern of ``text`` is of a thing."""
    words = words_of(text)
    shown = {
        word
        for noun, color, pattern in things
        for word in (noun, color, pattern, PATTERNS.get(pattern))
    }
    return not words & {*THING_NOUNS, *THING_COLORS, *PATTERNS, *PATTERNS.values()} - shown


@pytest.fixture(scope="module")
def place(of_run: Path) -> Path:
    return of_run / "drawn"


def test_things_differ_by_their_silhouettes() -> None:
    """Even where the outlines are averaged over poses, no two things cover the same ground."""
    shapes = {}
    for noun in THING_NOUNS:
        masks = [
            np.abs(pixels(Thing(noun, "red", NO_PATTERN), key=n) - RGB["red"]).sum(axis=2) < 90
            for n in range(12)
        ]
        shapes[noun] = np.mean(masks, axis=0)
        assert 0.04 < shapes[noun].mean() < 0.6, noun
    for one, other in combinations(THING_NOUNS, 2):
        common = (
            np.minimum(shapes[one], shapes[other]).sum()
            / np.maximum(shapes[one], shapes[other]).sum()
        )
        assert common < 0.9, (one, other)


def test_colors_patterns_and_both_things_of_a_picture_are_seen() -> None:
    """Plain is one color inside; each pattern has two, and as much of the second as tells it from
    the others.
    """
    for color in THING_COLORS:
        inside = pixels(Thing("box", color, NO_PATTERN))[24:40, 24:40].reshape(-1, 3)
        distance = {
            name: np.abs(np.median(inside, axis=0) - RGB[name]).sum() for name in THING_COLORS
        }
        assert min(distance, key=distance.get) == color
    second = {}
    for pattern in (NO_PATTERN, *PATTERNS):
        inside = [
            pixels(Thing("box", "red", pattern), key=key)[24:40, 24:40].reshape(-1, 3)
            for key in range(8)
        ]
        second[pattern] = np.mean([(square.min(axis=1) > 150).mean() for square in inside])
    assert second[NO_PATTERN] == 0 and 0.1 < second["dotted"] < 0.4 < second["striped"] < 0.6
    assert 0.4 < second["checked"] < 0.6
    sides = []
    for key in range(10):
        picture = pixels(
            Thing("box", "red", NO_PATTERN), Thing("heart", "blue", NO_PATTERN), key=key
        )
        columns = {
            c: np.flatnonzero((np.abs(picture - RGB[c]).sum(axis=2) < 90).any(axis=0))
            for c in ("red", "blue")
        }
        left, right = sorted(columns.values(), key=np.mean)
        assert left.max() < right.min()
        sides.append(columns["red"].mean() < 32)
    assert {True, False} == set(sides)


def test_compounds_are_of_the_three_kinds_and_texts_are_true() -> None:
    compounds = library.make_compounds(3, 90)
    assert compounds == library.make_compounds(3, 90) != library.make_compounds(4, 90)
    assert (
        len({frozenset((c.first, c.second)) for c in compounds})
        == len({c.name for c in compounds})
        == 90
    )
    for kind in tables.NOUNS_SEEN:
        of_kind = [c for c in compounds if c.kind == kind]
        assert len(of_kind) == 30 and sum(" " in c.name for c in of_kind) == 15
    for c in compounds:
        assert c.name.replace(" ", "") == c.first + c.second and c.name not in THING_NOUNS
        shown = [thing.noun for thing in c.things]
        if c.kind == "both":
            assert shown == [c.first, c.second] and len({thing.color for thing in c.things}) == 2
        else:
            assert len(shown) == 1 and c.things[0].pattern != NO_PATTERN
            assert (shown[0] in (c.first, c.second)) == (c.kind == "either")
    with pytest.raises(UserError, match="191 compounds of 190 pairs of nouns; lower tested"):
        library.make_compounds(0, 191)
    told = 0
    for index, compound in enumerate(library.make_compounds(1, 60)):
        for number in range(8):
            text = library.caption_things(compound.things, compound, dice(index, number))
            told += bool(words_of(text) & set(THING_COLORS))
            # Of its name, a compound's picture may show nothing.
            assert is_true(text.replace(compound.name, ""), compound.things), text
            assert not re.search(r"\b(a|an|the) (a|an|the)\b|\b(a [aeiou]|an [^aeiou])", text), text
        captions = library.write_examples(compound, dice(compound.name))
        assert len(set(captions)) == library.EXAMPLE_TEXTS
        for text in captions:
            assert (
                name_letters(compound.name) in name_letters(text)
                and text[0].isupper()
                and text.endswith(".")
            )
            rest = re.sub(rf"\b{compound.name}\b", "", text, flags=re.IGNORECASE)
            assert is_true(rest, compound.things) and words_of(rest) & {
                thing.noun for thing in compound.things
            }
        for text in library.write_descriptions(compound):
            assert is_true(text, compound.things) and name_letters(
                compound.name
            ) not in name_letters(text)
    assert told > 100


def test_the_trainings_differ_by_the_tested_compounds(place: Path) -> None:
    """But for compounds written as one word, which the untaught one has not met."""
    captions = read_table(place / "training" / "captions.parquet", tables.CAPTIONS)
    untaught = read_table(place / "training" / "untaught.parquet", tables.SPLIT).query(
        "split == 'train'"
    )
    known = set(
        make_vocabulary(captions.loc[captions["image_id"].isin(untaught["image_id"]), "text"])
    )
    listed = pd.read_csv(place / "list.csv")
    texts = [read_texts(place / f"{kind}.json") for kind in ("captions", "descriptions")]
    prompts = compound_prompts(listed, *texts)
    assert len(prompts) == 10 and all(len(of) == 24 for of in prompts.values())
    words = {
        word
        for of in prompts.values()
        for lines in of.values()
        for line in lines
        for word in words_of(line)
    }
    one_word = {name for name in listed["compound"] if " " not in name}
    assert words - known == one_word and len(one_word) == 12
    # Names that occur once train the word that stands for unknown ones.
    assert len({w for text in captions["text"] for w in words_of(text)}) > len(known)
    images = read_table(place / "training" / "images.parquet", tables.IMAGES)
    splits = {
        name: read_table(place / "training" / f"{name}.parquet", tables.SPLIT) for name in TRAININGS
    }
    trained = {
        name: set(table.query("split == 'train'")["image_id"]) for name, table in splits.items()
    }
    validation = {
        frozenset(table.query("split == 'test_seen'")["image_id"]) for table in splits.values()
    }
    assert len(validation) == 1 and len(next(iter(validation))) == library.VALIDATION_PICTURES
    assert len(trained["untaught"]) == 240 + 80 + 12 * 8 and trained["untaught"] < trained["taught"]
    extra = captions[captions["image_id"].isin(trained["taught"] - trained["untaught"])]
    assert extra["image_id"].nunique() == 24 * 8
    plain = captions[captions["image_id"].isin(trained["untaught"])]["text"].tolist()
    for row in listed.itertuples():
        assert not any(row.compound in text for text in plain)
        # Nor do the two stand together without the name.
        assert not any({row.first, row.second} <= words_of(text) for text in plain)
        assert extra["text"].str.contains(row.compound).any()
    assert all((place.parents[2] / path).is_file() for path in images["path"])


def test_example_captions_help_with_new_compounds_alone(of_run: Path) -> None:
    """The analysis of the small run's 24 compounds."""
    differences = read_analysis(of_run / "analysis.csv").set_index(["model", "prompt", "measure"])
    row = differences.loc[("untaught", "examples_5", "minus template")]
    assert row["n"] == 24 and row["low"] > 0 and row["p"] < 0.05
    assert differences.loc[("taught", "template", "minus untaught"), "low"] > 0.2
    # But not with its nouns reversed, where the names are as new as to the other.
    assert differences.loc[("taught", "reversed", "minus template"), "high"] < -0.2
