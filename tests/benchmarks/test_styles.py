"""Styles change pictures and nothing else, laws draw what they name, and verdicts are checked by
one rule.
"""

import numpy as np
import pandas as pd
import pytest

from benchmarks.laws import DRAWN, LAWS, STYLES, Prompts
from benchmarks.styles import SPANS, TOLERANCE, generators, wrong_regions
from compclip.core.seeds import rng
from compclip.dataset.sketch import draw
from compclip.dataset.sketch.world import Dice, draw_scene, make_world
from compclip.stats.composed import REGIONS


@pytest.fixture
def prompts() -> Prompts:
    pairs = ["red_bill", "red_wing", "tan_bill", "tan_wing"] * 50
    table = pd.DataFrame({"split": ["test_seen", "test_unseen"] * 100, "pair": pairs})
    table[["adjective", "noun"]] = table["pair"].str.split("_", expand=True)
    return Prompts(
        table, np.linspace(0, 1, 200), np.linspace(1, 0, 200), (table["noun"] == "bill").to_numpy()
    )


@pytest.mark.parametrize("name", LAWS)
def test_a_law_draws_seen_prompts_as_asked_unless_it_says_so(name: str, prompts: Prompts) -> None:
    drawn = LAWS[name](prompts, np.random.default_rng(0))
    assert set(drawn) <= set(DRAWN) and len(drawn) == 200
    seen = drawn[~prompts.held_out]
    if "all" in name.split() or "ignores" in name:
        assert 0.5 < (seen == "asked").mean() <= 1
    else:
        assert (seen == "asked").all()
    assert (LAWS[name](prompts, np.random.default_rng(0)) == drawn).all()


def test_fractions_of_laws(prompts: Prompts) -> None:
    fractions = {
        name: np.mean(
            [
                DRAWN[kind]
                for kind in LAWS[name](prompts, np.random.default_rng(1))[prompts.held_out]
            ]
        )
        for name in LAWS
    }
    assert fractions["composes all"] == 1 and fractions["composes nothing"] == 0
    assert fractions["half of each held-out part"] == 0.5
    assert fractions["half of the prompts"] == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("name", STYLES)
def test_a_style_changes_a_picture_and_leaves_the_code_as_it_was(name: str) -> None:
    dice = Dice(rng(0, "test"))
    world = make_world(0, 2)
    scene, pose = draw_scene(world, 0, dice), draw.draw_pose(dice)
    plain = draw.paint_scene(scene, pose)
    with STYLES[name].applied():
        picture = STYLES[name].of(draw.paint_scene(scene, pose), 0)
    assert picture.size == plain.size and picture.mode == "RGB"
    assert (np.asarray(picture) != np.asarray(plain)).any() == (name != "plain")
    assert (np.asarray(draw.paint_scene(scene, pose)) == np.asarray(plain)).all()


def test_a_verdict_is_wrong_more_than_two_points_outside_of_its_regions() -> None:
    assert len(SPANS) == 15 and SPANS["half"] == (REGIONS[1], REGIONS[2])
    for verdict, truth, wrong in (
        ("half", 0.4 - TOLERANCE + 0.001, False),
        ("half", 0.4 - TOLERANCE - 0.001, True),
        ("half to mostly", 0.9 + TOLERANCE - 0.001, False),
        ("composes", 1.0, False),
        ("memorizes", 0.13, True),
    ):
        assert wrong_regions(verdict, truth) == wrong


def test_seeds_pair_other_styles_and_laws() -> None:
    first, second = (generators(seed, 40, quick=False) for seed in (0, 1))
    assert len(set(first)) == 40 and len(set(first) & set(second)) < 10
    assert {law for _, law in first} == set(LAWS) and {style for style, _ in first} == set(STYLES)
    assert {style for style, _ in generators(0, 1, quick=True)} == {"plain"}
