"""The generators of sketches have the skill of their name, and differ in nothing else."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

from compclip.core import seeds, tables
from compclip.core.artifacts.parquet import check_table, read_table
from compclip.core.settings import plugins
from compclip.dataset.sketch.world import ATTRIBUTES, Dice, Scene, draw_scene, make_world
from compclip.generate import sketching
from compclip.generate.config import GENERATOR_KINDS
from compclip.generate.generator import Context, Generated
from compclip.generate.generators import blind, faithful, half, memorizer, unbound
from compclip.generate.sketching import Statement, prompt_statements
from tests.project import COMPOSITION, DATASET, Project

World = tuple[dict[str, pd.DataFrame], pd.DataFrame]
NAMES = ("faithful", "memorizer", "unbound", "blind")
WORLD = make_world(0, 20)


def dice(*keys: int) -> Dice:
    return Dice(seeds.rng(0, "test", *keys))


def start(seed: int) -> Scene:
    return draw_scene(WORLD, seed % 20, dice(seed))


@st.composite
def prompts(draw: st.DrawFn) -> list[Statement]:
    """Some drawable statements, each about another attribute."""
    chosen = draw(
        st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, max_size=6, unique=True)
    )
    return [Statement(*a.split(":"), draw(st.sampled_from(ATTRIBUTES[a]))) for a in chosen]


FACTS = pd.DataFrame(
    [
        ("0", 0, "wing", "color", "red", 2, 5),
        ("0", 0, "tail", "color", "red", 2, 5),
        ("0", 0, "bill", "color", "blue", 20, 24),
        ("0", 0, "bill", "shape", "long", 15, 19),
        ("1", 3, "crown", "color", "tan", 4, 7),
    ],
    columns=["image_id", "caption_id", "part", "kind", "value", "start", "end"],
)
SWAPPED = pd.DataFrame(
    {
        "image_id": ["0"],
        "caption_id": [0],
        "text": [""],
        "swapped_text": [""],
        "pair": ["pink_bill"],
        "changes": [
            [{"noun": "bill", "original_adj": "blue", "new_adj": "pink", "start": 20, "end": 24}]
        ],
    }
)


def test_swaps_change_the_statement_at_their_place() -> None:
    asked = pd.DataFrame(
        {
            "image_id": ["0", "0", "1", "9"],
            "caption_id": [0, 0, 3, 0],
            "split": ["test_seen", "test_swapped", "test_swapped", "test_seen"],
        }
    )
    seen, swapped, untouched, silent = prompt_statements(asked, FACTS, SWAPPED, "color")
    red = [Statement("wing", "color", "red"), Statement("tail", "color", "red")]
    long = Statement("bill", "shape", "long")
    assert seen == [*red, Statement("bill", "color", "blue"), long]
    assert swapped == [*red, Statement("bill", "color", "pink"), long]
    assert untouched == [Statement("crown", "color", "tan")] and silent == []


@given(prompts(), st.integers(0, 99))
def test_faithful_draws_what_is_stated_blind_nothing_and_unbound_never_so(
    stated: list[Statement], seed: int
) -> None:
    said = {s.attribute: s.value for s in stated}
    assert faithful.paint(stated, start(seed), dice()) == {**start(seed), **said}
    assert blind.paint(stated, start(seed), dice()) == start(seed)
    scene = unbound.paint(stated, start(seed), dice(seed))
    for s in stated:
        assert s.value != scene[s.attribute] in {*ATTRIBUTES[s.attribute], None}
    colors = [s for s in stated if s.kind == "color"]
    placed, values = unbound.misplace(colors, "color", dice(seed)), Counter(s.value for s in colors)
    assert Counter(placed.values()) == values
    if colors and 2 * max(values.values()) <= len(colors):
        assert placed.keys() == {s.attribute for s in colors}


@given(prompts(), st.integers(0, 99), st.data())
def test_memorizer_draws_only_known_pairs(
    stated: list[Statement], seed: int, data: st.DataObject
) -> None:
    every = [
        (value, a.split(":")[0]) for a, values in sorted(ATTRIBUTES.items()) for value in values
    ]
    unknown = data.draw(st.sets(st.sampled_from(every), max_size=30)) | {
        (s.value, s.part) for s in stated[:1]
    }
    known = Counter({pair: 1 + n % 7 for n, pair in enumerate(every) if pair not in unknown})
    scene = memorizer.paint(
        stated, start(seed), dice(), pair_counts=known, favorite=memorizer.favorites(known)
    )
    for s in stated:
        if (s.value, s.part) not in unknown:
            assert scene[s.attribute] == s.value
        else:
            frequency = {v: known[v, s.part] for v in ATTRIBUTES[s.attribute]}
            assume(any(frequency.values()))
            assert frequency[scene[s.attribute]] == max(frequency.values())
    unnamed = ATTRIBUTES.keys() - {s.attribute for s in stated}
    assert all(scene[a] == start(seed)[a] for a in unnamed)


@pytest.fixture(scope="module")
def world(first_run: Project) -> World:
    """Tables and prompts of the small run; one prompt is swapped to what no bird can be."""
    place = first_run.root / "results" / DATASET
    found = {
        name: pd.read_parquet(place / f"{name}.parquet")
        for name in ("images", "pairs", "scenes", "facts")
    }
    found |= {
        name: pd.read_parquet(place / COMPOSITION / f"{name}.parquet")
        for name in ("splits", "swapped")
    }
    prompts = read_table(place / COMPOSITION / "prompts.parquet", tables.PROMPTS)
    swapped = found["swapped"]
    image, caption = prompts.query("split == 'test_swapped'")[["image_id", "caption_id"]].iloc[0]
    (changes,) = swapped.loc[
        (swapped["image_id"] == image) & (swapped["caption_id"] == caption), "changes"
    ]
    changes[0]["new_adj"] = "plaid"
    return found, prompts


def run(
    name: str,
    world: World,
    folder: Path,
    prompts: pd.DataFrame | None = None,
    **settings: float,
) -> Generated:
    found, every = world
    kind = plugins.load(GENERATOR_KINDS, name)
    context = Context({t: found[t] for t in kind.TABLES}, folder, f"place/{name}", "color", 0)
    return kind.generate(kind.Settings(**settings), every if prompts is None else prompts, context)


@given(prompts(), st.integers(0, 99))
def test_half_is_faithful_or_memorizes(stated: list[Statement], seed: int) -> None:
    bird = start(seed)
    known = Counter({("red", "wing"): 1, ("tan", "bill"): 2})
    favorite = memorizer.favorites(known)
    memorized = memorizer.paint(stated, bird, dice(), pair_counts=known, favorite=favorite)

    def draw(fraction: float) -> Scene:
        return half.paint(
            stated, bird, dice(seed), fraction=fraction, pair_counts=known, favorite=favorite
        )

    assert draw(0.0) == memorized
    assert draw(1.0) == faithful.paint(stated, bird, dice())
    assert draw(0.5) in (draw(0.0), draw(1.0))


def held_out_shown(world: World, made: Generated) -> pd.Series:
    """Return whether each image of a held-out prompt shows the prompt's pair."""
    prompts = world[1]
    rows = prompts[prompts["split"] != "test_seen"]
    assert made.scenes is not None
    shown = {}
    for prompt in rows.itertuples():
        adjective, noun = prompt.pair.split("_")
        if sketching.can_have(f"{noun}:color", adjective):
            shown[prompt.Index] = made.scenes.at[prompt.Index, f"{noun}:color"] == adjective
    return pd.Series(shown)


def test_half_draws_half_of_the_held_out_prompts(world: World, tmp_path: Path) -> None:
    shown = held_out_shown(world, run("half", world, tmp_path))
    # Four standard deviations of a binomial variable.
    assert len(shown) > 50
    assert abs(shown.mean() - 0.5) < 2 / len(shown) ** 0.5


def test_half_has_images_of_its_own(world: World, tmp_path: Path) -> None:
    some = world[1].head(40)
    run("faithful", world, tmp_path / "faithful", some)
    run("half", world, tmp_path / "half", some, fraction=1.0)
    for file in some.file_name:
        own = (tmp_path / "half" / file).read_bytes()
        assert own != (tmp_path / "faithful" / file).read_bytes()


def test_half_in_another_style_shows_the_same_scenes(world: World, tmp_path: Path) -> None:
    some = world[1].head(40)
    plain = run("half", world, tmp_path / "plain", some)
    dark = run("half", world, tmp_path / "dark", some, light=0.8, size=0.85)
    assert plain.scenes is not None
    assert plain.scenes.equals(dark.scenes)
    for file in some.file_name:
        light, less = (
            np.asarray(Image.open(tmp_path / name / file)).mean() for name in ("plain", "dark")
        )
        assert less < 0.9 * light


@pytest.mark.parametrize("name", NAMES)
def test_an_image_depends_only_on_its_prompt(name: str, world: World, tmp_path: Path) -> None:
    prompts = world[1]
    made = run(name, world, tmp_path / "all")
    check_table(made.manifest, tables.MANIFEST, "manifest")
    assert list(made.manifest.path) == [f"place/{name}/{f}" for f in prompts.file_name]
    assert made.scenes is not None and list(made.scenes.columns[4:]) == list(ATTRIBUTES)
    some = prompts.iloc[[31, 4, 50]].reset_index(drop=True)
    run(name, world, tmp_path / "some", some)
    for file in some.file_name:
        assert (tmp_path / "some" / file).read_bytes() == (tmp_path / "all" / file).read_bytes()


def test_generators_agree_on_what_the_prompt_does_not_state(world: World, tmp_path: Path) -> None:
    made = {name: run(name, world, tmp_path / name) for name in NAMES}
    found, prompts = world
    stated = prompt_statements(prompts, found["facts"], found["swapped"], "color")
    for n, said in enumerate(stated):
        scenes = {name: made[name].scenes.iloc[n][list(ATTRIBUTES)].to_dict() for name in NAMES}
        drawable = [s for s in said if sketching.can_have(s.attribute, s.value)]
        assert all(scenes["faithful"][s.attribute] == s.value for s in drawable)
        for attribute in ATTRIBUTES.keys() - {s.attribute for s in drawable}:
            values = [scenes[name][attribute] for name in ("faithful", "memorizer", "blind")]
            assert len({v if isinstance(v, str) else None for v in values}) == 1
    # The swapped prompt starts from the same bird as its original.
    blind_scenes = (
        made["blind"].scenes.query("draw == 0").set_index(["split", "image_id", "caption_id"])
    )
    swapped = blind_scenes.loc["test_swapped"]
    assert swapped.equals(blind_scenes.loc["test_seen"].loc[swapped.index])
    for name in NAMES:
        assert sum(made[name].summary["undrawable"].values()) <= 2
    assert any(pair.startswith("plaid_") for pair in made["faithful"].summary["undrawable"])
    context = Context(world[0], Path(), "", "color", 0)
    splits, pairs = world[0]["splits"], world[0]["pairs"]
    train = splits.loc[splits["split"] == "train", "image_id"]
    known = pairs[pairs["image_id"].isin(train)]
    assert 0 < len(known) < len(pairs) and len(train) < len(splits)
    assert sketching.train_pairs(context) == Counter(
        zip(known["adjective"], known["noun"], strict=True)
    )
    assert len(sketching.train_birds(context)) == len(train)
