"""The choice of how held-out pairs are drawn, and the expected widths of intervals."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.heldout import FEW_PAIRS, PAPER_RULE
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.tables import PROMPTS, TESTS
from compclip.pairs.config import Selection
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from compclip.split.choose_draw import (
    TrialData,
    captions_needed,
    choose_draw,
    draws_of,
    widest,
)
from compclip.split.composition import Lexicons, Seeding
from compclip.split.config import Draw, DrawConfig, Heldout, SplitConfig
from compclip.split.make_splits import LOW_TRAIN
from compclip.split.widths import (
    IMAGE_CORRELATION,
    PAIR_SD,
    WIDE,
    WIDTH_REMEDIES,
    effective_pairs,
    estimate_widths,
    half_width,
)
from compclip.text.lexicon import LEXICONS, load_lexicon
from tests.everyday import captions
from tests.graph import jobs
from tests.split.stage import inputs, run, write_tables
from tests.split.test_sample_heldout import ranking
from tests.split.worlds import LEXICONS as WORDS
from tests.split.worlds import World, images_table, world

OPEN = st.fixed_dictionaries(
    {},
    optional={
        "fraction": st.sampled_from([0.05, 0.4]),
        "window": st.sampled_from([(0, 60), (30, 100)]),
        "prefer_swappable": st.booleans(),
        "min_pairs": st.sampled_from([0, 5]),
    },
)


@given(OPEN)
def test_what_is_set_is_kept_and_the_paper_comes_first(given: dict) -> None:
    draws = draws_of(DrawConfig(**given))
    first = Draw(**given)
    assert draws[0] == first and len({*map(str, draws)}) == len(draws)
    assert all({**draw.model_dump(), **given} == draw.model_dump() for draw in draws)
    if {"fraction", "window", "prefer_swappable"} <= given.keys():
        assert draws == [first]
    is_open = not {"fraction", "window", "prefer_swappable"} <= given.keys()
    assert SplitConfig(heldout=Heldout(**given)).is_chosen == is_open
    assert not SplitConfig(heldout=Heldout(**given, pairs=["red_wing"])).is_chosen
    assert not SplitConfig(heldout=Heldout(**given), method="divergence").is_chosen


def test_the_rule_reads_captions_only_where_it_chooses(tmp_path: Path) -> None:
    table = tmp_path / "captions.csv"
    table.write_text("image_id,caption\n1,a red bird\n")
    config = {
        "compositions": ["color"],
        "dataset": {"source": "table", "table": {"file": str(table)}},
    }
    set_draw = {
        "split": {"heldout": {"fraction": 0.1, "window": [25, 75], "prefer_swappable": False}}
    }
    for values, is_chosen in ((config, True), (config | set_draw, False)):
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(values))
        (step,) = (
            planned for planned in jobs(tmp_path / "c.yaml") if planned.rule == "sample_heldout"
        )
        assert {Path(path).name for path in step.inputs} == (
            {"ranking.parquet", "captions.parquet", "pairs.parquet", "color.yaml", "common.yaml"}
            if is_chosen
            else {"ranking.parquet"}
        )
        assert step.mock_job().params.is_chosen == is_chosen


def choose(data: World, width: float, **given: object) -> tuple[Draw, dict]:
    config = DrawConfig.model_validate(given)
    trials = TrialData(data.captions, data.pairs, data.ranking, Lexicons(*WORDS), Seeding(1))
    draw, result = choose_draw(trials, config, width)
    return draw, result["chosen"]


@pytest.fixture(scope="module")
def data() -> World:
    return world(5, images=100, captions=2)


def test_chooses_the_first_draw_that_is_narrow_enough_or_the_narrowest(data: World) -> None:
    """Each draw alone, as an explicit setting, gives the same numbers; the choice among all follows
    from them.
    """
    alone, window = [], (10, 90)
    for draw in draws_of(DrawConfig(window=window)):
        try:
            alone.append((draw, choose(data, 1, **draw.model_dump())[1]))
        except UserError:
            continue
    widths = [
        widest(chosen[split]["half_width"] for split in ("test_unseen", "test_swapped"))
        for _, chosen in alone
    ]
    assert len(alone) > 3 and min(widths) < widths[0]
    for width in (99, 100 * (min(widths) + widths[0]) / 2, 0.5):
        draw, chosen = choose(data, width, window=window)
        place = [other for other, _ in alone].index(draw)
        assert chosen["test_unseen"] == alone[place][1]["test_unseen"]
        if "captions_needed" in chosen:
            assert all(w > width / 100 for w in widths) and chosen["tried"] == len(alone)
        else:
            assert widths[place] <= width / 100 and chosen["tried"] == place + 1
            assert all(w > width / 100 for w in widths[:place])


def test_the_step_records_the_choice_and_its_numbers_come_true(tmp_path: Path) -> None:
    folder = inputs(tmp_path / "d")
    for _ in range(2):
        before = (
            (folder / "heldout.json").read_bytes() if (folder / "heldout.json").exists() else b""
        )
        run("sample_heldout", folder, is_chosen=True, width=40, draw={"window": [0, 100]})
    assert (folder / "heldout.json").read_bytes() == before
    heldout = read_json(folder / "heldout.json")
    assert heldout["window"] == [0, 100] and heldout["source"] == "drawn"
    for step in ("make_splits", "swap_adjectives", "audit", "accept_split", "make_prompts"):
        run(step, folder)
    made = read_json(folder / "widths.json")["splits"]
    for split in ("test_unseen", "test_swapped"):
        assert heldout["chosen"][split] == made[split]


@given(st.integers(1, 8), st.integers(20, 400), st.integers(100, 1000), st.floats(0.05, 0.3))
def test_captions_needed_are_those_that_reach_the_width(
    pairs: int, prompts: int, captions: int, width: float
) -> None:
    splits = {
        name: {"prompts": prompts, "images": prompts, "effective_pairs": pairs, "half_width": None}
        for name in ("test_unseen", "test_swapped")
    }
    table = ranking(64)
    growth = math.log2(64 / (table["count"] >= 2 * table["count"].min()).sum())
    needed = captions_needed(splits, table, captions, width)
    for factor, is_enough in (
        ((1.1, True), (0.8, False)) if needed and needed > 1.3 * captions else ()
    ):
        times = factor * needed / captions
        half = half_width(round(times * prompts), round(times * prompts), pairs * times**growth)
        assert (half is not None and half <= width) == is_enough


def test_no_possible_draw_is_one_line_and_the_default_is_the_papers(data: World) -> None:
    with pytest.raises(
        UserError,
        match="none of 24 draws of held-out pairs gives splits .*less than one pair.*add capt",
    ):
        trials = TrialData(data.captions, data.pairs, ranking(1), Lexicons(*WORDS), Seeding())
        choose_draw(trials, DrawConfig(), 15)
    first = draws_of(DrawConfig())[0]
    assert (first.fraction, *first.window, first.prefer_swappable) == PAPER_RULE


def test_few_captions_get_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """600 captions without a noun lexicon: one line says what was chosen, how wide intervals are
    and what is needed.
    """
    texts, color = captions(600), load_lexicon(LEXICONS / "adjectives" / "color.yaml")
    found = extract_pairs(texts, [color])
    images, ranked = (
        images_table(sorted(set(texts["image_id"]))),
        rank_pairs(found, color, None, Selection(min_count=3)),
    )
    write_tables(tmp_path, captions=texts, images=images, pairs=found, ranking=ranked)
    lexicons = {"adjectives": LEXICONS / "adjectives" / "color.yaml", "nouns": None}
    with caplog.at_level("WARNING"):
        run("sample_heldout", tmp_path, is_chosen=True, draw={"window": [25, 75]}, **lexicons)
        for step in ("make_splits", "swap_adjectives", "make_prompts"):
            run(step, tmp_path, **lexicons)
    assert len(caplog.messages) == 1, caplog.messages
    assert re.search(
        r"the best of \d+ draws tried: .*; ± 15 points need roughly [\d,]+ captions", caplog.text
    )
    made = read_json(tmp_path / "splits.json")
    assert made["sizes"]["train"] >= LOW_TRAIN * made["images"]


def prompts(images: dict[str, int], each: int = 2, split: str = "test_unseen") -> pd.DataFrame:
    """The prompts of a split: for each pair the number of its images, with ``each`` prompts."""
    rows = [
        (
            f"{pair}_{i}",
            number,
            0,
            split,
            "a red wing",
            None if split == "test_seen" else pair,
            f"{pair}_{i}_{number}",
        )
        for pair, n in images.items()
        for i in range(n)
        for number in range(each)
    ]
    return pd.DataFrame(rows, columns=list(PROMPTS.columns))


@pytest.mark.parametrize(("pairs", "images", "each"), [(40, 20, 3), (12, 4, 6), (6, 200, 1)])
def test_equals_a_simulation(pairs: int, images: int, each: int) -> None:
    """Interval of the pairs' means, simulated with these variances: its root mean square is the
    expected width.
    """
    random = np.random.default_rng(0)
    shape = (2000, pairs, images)
    scores = random.normal(0, PAIR_SD, shape[:2])[..., None] + random.normal(
        0, math.sqrt(IMAGE_CORRELATION) / 2, shape
    )
    scores += random.normal(0, math.sqrt((1 - IMAGE_CORRELATION) / each) / 2, shape)
    means = scores.mean(axis=2)
    s = means.std(axis=1, ddof=1) / math.sqrt(pairs)
    assert means.mean(axis=1).std() == pytest.approx(math.sqrt((s**2).mean()), rel=0.05)
    simulated = stats.t.ppf(0.975, pairs - 1) * math.sqrt((s**2).mean())
    assert half_width(pairs * images * each, pairs * images, pairs) == pytest.approx(
        simulated, rel=0.12
    )


def test_without_pairs_below_ten_pairs_and_where_no_interval_exists() -> None:
    assert half_width(400, 400) == pytest.approx(1.96 * math.sqrt(0.25 / 400), rel=1e-3)
    assert half_width(400, 400, 1) is None and half_width(1, 1) is None and half_width(0, 0) is None
    assert half_width(400, 400, 1.1) == 1.0
    assert effective_pairs(pd.Series([5, 5, 5])) == pytest.approx(3)
    assert effective_pairs(pd.Series([98, 1, 1])) == pytest.approx(1.04, abs=0.01)
    halves = [half_width(10**9, 10**9, pairs) for pairs in (FEW_PAIRS - 1, FEW_PAIRS)]
    assert halves[0] > WIDE > halves[1]


def test_the_documents_have_the_measured_widths_and_the_advised_settings() -> None:
    """Expected widths are half to twice the measured ones, and the constants are the measured
    ones.
    """
    text = (ROOT / "docs" / "widths.md").read_text()
    rows = re.findall(r"^\| (?:color|shape), test_\w+ \|(.*)\|$", text, re.MULTILINE)
    table = [[float(cell.replace(",", "")) for cell in row.split("|")] for row in rows]
    assert len(table) == 4
    for n, images, pairs, effective, _, over_pairs, _, _, expected in table:
        assert half_width(int(n), int(images), effective) == pytest.approx(expected, abs=0.003)
        assert 0.5 < expected / (stats.t.ppf(0.975, pairs - 1) * over_pairs) < 2
    assert math.sqrt(np.mean([row[6] ** 2 for row in table])) == pytest.approx(PAIR_SD, abs=0.005)
    assert min(row[7] for row in table) < IMAGE_CORRELATION < max(row[7] for row in table)
    config = (ROOT / "docs" / "config.md").read_text()
    for key in re.findall(r"[a-z]+\.[a-z_.]+[a-z]", " ".join(WIDTH_REMEDIES.values())):
        section, _, name = key.rpartition(".")
        is_row = f"`{section}`" in config and f"| `{name}` |" in config
        assert is_row or f"# `{key}`" in config, key


EVEN = {f"a{i}_n": 10 for i in range(12)}
FIVE = dict(list(EVEN.items())[:5])


@pytest.mark.parametrize(
    ("table", "about", "wide", "remedy"),
    [
        (
            prompts(FIVE, each=20),
            {"source": "drawn"},
            "± 29.2 points (pairs: 5, prompts: 1,000, images: 50)",
            "set fraction, window and prefer_swappable of split.heldout to null, so that they are "
            "chosen, or add captions",
        ),
        (
            prompts({"a_n": 90} | EVEN, split="test_swapped"),
            {"source": "config"},
            "± 30.9 points",
            "list more",
        ),
        (
            prompts({"a_n": 9}),
            {"source": "published"},
            "interval unknown (pairs: 1,",
            "the published",
        ),
        (prompts({}), {"source": "divergence"}, "interval unknown (pairs: 0,", "raise split.div"),
        (
            prompts({"a_n": 9}),
            {"source": "drawn", "chosen": {"width": 9, "captions_needed": 7200}},
            "interval unknown",
            "± 9 points need roughly 7,200 captions of this kind",
        ),
        (
            prompts({"a_n": 9}),
            {"source": "drawn", "chosen": {"width": 9, "captions_needed": None}},
            "interval unknown",
            "± 9 points need many more captions of this kind",
        ),
    ],
)
def test_one_line_names_wide_intervals_and_what_helps(
    table: pd.DataFrame, about: dict, wide: str, remedy: str
) -> None:
    split = table["split"].iloc[0] if len(table) else "test_unseen"
    others = [prompts(EVEN, split=other) for other in TESTS if other != split]
    (warning,) = estimate_widths(pd.concat([table, *others]), about)["warnings"]
    assert warning.startswith(f"wide intervals: {split} {wide}") and f"); {remedy}" in warning
    assert (
        estimate_widths(pd.concat([prompts(EVEN, split=split), *others]), about)["warnings"] == []
    )
