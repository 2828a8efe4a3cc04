"""The choice of how held-out pairs are drawn, where the config leaves it open."""

import math
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.core.heldout import PAPER_RULE
from compclip.core.tables import CAPTIONS, IMAGES, PAIRS, RANKING
from compclip.io import read_json, write_table
from compclip.pairs.config import Selection
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from compclip.split.choose_draw import captions_needed, choose_draw, draws_of, widest
from compclip.split.config import Draw, DrawConfig, Heldout, SplitConfig
from compclip.split.make_splits import LOW_TRAIN
from compclip.split.widths import half_width
from compclip.text.lexicon import LEXICONS, load_lexicon
from tests.everyday import captions
from tests.graph import jobs
from tests.split.split_worlds import LEXICONS as WORDS
from tests.split.split_worlds import World, images_table, world
from tests.split.stage import inputs, run
from tests.split.test_sample_heldout import ranking

OPEN = st.fixed_dictionaries(
    {}, optional={
        "fraction": st.sampled_from([0.05, 0.4]), "window": st.sampled_from([(0, 60), (30, 100)]),
        "prefer": st.sampled_from(["any", "swappable"]), "least": st.sampled_from([0, 5]),
    },
)  # fmt: skip


@given(OPEN)
def test_what_is_set_is_kept_and_the_paper_comes_first(given: dict) -> None:
    draws = draws_of(DrawConfig(**given))
    first = Draw(**given)
    assert draws[0] == first and len({*map(str, draws)}) == len(draws)
    assert all({**draw.model_dump(), **given} == draw.model_dump() for draw in draws)
    if {"fraction", "window", "prefer"} <= given.keys():
        assert draws == [first]
    is_open = not {"fraction", "window", "prefer"} <= given.keys()
    assert SplitConfig(heldout=Heldout(**given)).is_chosen == is_open
    assert not SplitConfig(heldout=Heldout(**given, pairs=["red_wing"])).is_chosen
    assert not SplitConfig(heldout=Heldout(**given), method="divergence").is_chosen


def test_the_rule_reads_captions_only_where_it_chooses(tmp_path: Path) -> None:
    table = tmp_path / "captions.csv"
    table.write_text("image_id,caption\n1,a red bird\n")
    config = {"compositions": ["color"], "dataset": {"source": "table", "table": {"file": str(table)}}}
    set_draw = {"split": {"heldout": {"fraction": 0.1, "window": [25, 75], "prefer": "any"}}}
    for values, is_chosen in ((config, True), (config | set_draw, False)):
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(values))
        (step,) = (planned for planned in jobs(tmp_path / "c.yaml") if planned.rule == "sample_heldout")
        assert {Path(path).name for path in step.inputs} == (
            {"ranking.parquet", "captions.parquet", "pairs.parquet", "color.yaml", "common.yaml"}
            if is_chosen
            else {"ranking.parquet"}
        )
        assert step.stand_in().params.is_chosen == is_chosen


def choose(data: World, width: float, **given: object) -> tuple[Draw, dict]:
    config = DrawConfig.model_validate(given)
    draw, result = choose_draw(data.captions, data.pairs, data.ranking, config, width, *WORDS, seed=1)
    return draw, result["chosen"]


@pytest.fixture(scope="module")
def data() -> World:
    return world(5, images=100, captions=2)


def test_chooses_the_first_draw_that_is_narrow_enough_or_the_narrowest(data: World) -> None:
    """Each draw alone, as an explicit setting, gives the same numbers; the choice among all follows from them."""
    alone, window = [], (10, 90)
    for draw in draws_of(DrawConfig(window=window)):
        try:
            alone.append((draw, choose(data, 1, **draw.model_dump())[1]))
        except UserError:
            continue
    widths = [widest(chosen[split]["half_width"] for split in ("test_unseen", "test_swapped")) for _, chosen in alone]
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
        before = (folder / "heldout.json").read_bytes() if (folder / "heldout.json").exists() else b""
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
def test_captions_needed_are_those_that_reach_the_width(pairs: int, prompts: int, captions: int, width: float) -> None:
    splits = {
        name: {"prompts": prompts, "images": prompts, "effective_pairs": pairs, "half_width": None}
        for name in ("test_unseen", "test_swapped")
    }
    table = ranking(64)
    growth = math.log2(64 / (table["count"] >= 2 * table["count"].min()).sum())
    needed = captions_needed(splits, table, captions, width)
    for factor, is_enough in ((1.1, True), (0.8, False)) if needed and needed > 1.3 * captions else ():
        times = factor * needed / captions
        half = half_width(round(times * prompts), round(times * prompts), pairs * times**growth)
        assert (half is not None and half <= width) == is_enough


def test_where_no_draw_gives_splits_one_line_says_so_and_the_default_is_the_rule_of_the_paper(data: World) -> None:
    with pytest.raises(
        UserError, match="none of 24 draws of held-out pairs gives splits .*less than one pair.*add capt"
    ):
        choose_draw(data.captions, data.pairs, ranking(1), DrawConfig(), 15, *WORDS)
    first = draws_of(DrawConfig())[0]
    assert (first.fraction, *first.window, first.prefer) == PAPER_RULE


def test_few_captions_get_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """600 captions without a noun lexicon: one line says what was chosen, how wide intervals are and what is needed."""
    texts, color = captions(600), load_lexicon(LEXICONS / "adjectives" / "color.yaml")
    found = extract_pairs(texts, [color])
    images = images_table(sorted(set(texts["image_id"])))
    tables = {
        "captions": texts,
        "images": images,
        "pairs": found,
        "ranking": rank_pairs(found, color, None, Selection(min_count=3)),
    }
    for (name, table), schema in zip(tables.items(), (CAPTIONS, IMAGES, PAIRS, RANKING), strict=True):
        write_table(table, tmp_path / f"{name}.parquet", schema)
    lexicons = {"adjectives": LEXICONS / "adjectives" / "color.yaml", "nouns": None}
    with caplog.at_level("WARNING"):
        run("sample_heldout", tmp_path, is_chosen=True, draw={"window": [25, 75]}, **lexicons)
        for step in ("make_splits", "swap_adjectives", "make_prompts"):
            run(step, tmp_path, **lexicons)
    assert len(caplog.messages) == 1, caplog.messages
    assert re.search(r"the best of \d+ draws tried: .*; ± 15 points need roughly [\d,]+ captions", caplog.text)
    made = read_json(tmp_path / "splits.json")
    assert made["sizes"]["train"] >= LOW_TRAIN * made["images"]
