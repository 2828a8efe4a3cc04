"""The draw of the held-out pairs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.heldout import heldout_note, pair_names
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import PAIRS, RANKING, SPLIT
from compclip.split.composition import Seeding
from compclip.split.config import Draw
from compclip.split.sample_heldout import check_listed, draw_heldout, n_heldout
from compclip.text.lexicon import Lexicon
from tests.split.stage import inputs, run


def ranking(n: int) -> pd.DataFrame:
    rows = [
        (f"a{i}", f"n{i}", n + 1 - i, n + 1 - i, i, 100 * (i - 0.5) / n) for i in range(1, n + 1)
    ]
    return pd.DataFrame(rows, columns=list(RANKING.columns))


LEXICONS = tuple(
    Lexicon(name, {f"{name[0]}{i}": f"{name[0]}{i}" for i in range(30)})
    for name in ("adjectives", "nouns")
)
# Two pairs occur that are not ranked.
COUNTS = pd.Series([3, 2], index=["a1_n2", "a2_n1"])


def test_half_rounds_up_and_every_pair_of_the_window_can_be_drawn() -> None:
    assert [n_heldout(n, 0.1) for n in (4, 5, 14, 15, 298, 287)] == [0, 1, 1, 2, 30, 29]
    assert n_heldout(50, 0.29) == 15  # 14.5, which floats make 14.499999999999998
    keys = (0, "d", "color"), (1, "d", "color"), (0, "e", "color"), (0, "d", "shape")
    assert len({tuple(draw_heldout(ranking(298), Draw(), Seeding(*key))) for key in keys}) == 4, (
        "each key decides"
    )
    drawn = {
        pair
        for seed in range(300)
        for pair in draw_heldout(ranking(20), Draw(), Seeding(seed, "d", "c"))
    }
    assert drawn == {f"a{i}_n{i}" for i in range(6, 16)}


@given(st.integers(5, 300), st.integers(0, 10**6))
def test_drawn_between_the_quartiles_without_replacement(n: int, seed: int) -> None:
    table = ranking(n)
    drawn = draw_heldout(table, Draw(), Seeding(seed, "d", "color"))
    assert len(drawn) == len(set(drawn)) == n_heldout(n, 0.1)
    place = table.set_index(pair_names(table))["percentile"]
    assert all(25 <= place[pair] <= 75 for pair in drawn)
    assert drawn == sorted(drawn)
    assert drawn == draw_heldout(
        table.sample(frac=1, random_state=1), Draw(), Seeding(seed, "d", "color")
    )


@pytest.mark.parametrize(
    ("n", "choice", "message"),
    [
        (4, Draw(), "10% of 4 ranked pairs is less than one pair"),
        (20, Draw(fraction=0.6), "12 pairs must be held out, but only 10 of 20"),
        (20, ["a3_n33"], "d/color: 'a3_n33': lexicon nouns has no 'n33'; did you mean a3_n3"),
        (20, ["a3_n4"], "d/color: 'a3_n4' occurs in no caption; remove it"),
        (20, ["a3_n3", "a3_n3"], "a pair is listed twice; remove one"),
        (2, ["a1_n1", "a2_n2"], "all 2 ranked pairs are held out"),
    ],
)
def test_what_cannot_be_held_out(n: int, choice: Draw | list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        if isinstance(choice, Draw):
            draw_heldout(ranking(n), choice, Seeding(0, "d", "color"))
        else:
            check_listed(ranking(n), COUNTS, choice, *LEXICONS, "d/color")


def test_an_unranked_pair_is_held_out_with_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = inputs(tmp_path / "d")
    table = read_table(folder / "ranking.parquet", RANKING)
    unranked, ranked = pair_names(table).iloc[[-1, 0]]
    write_table(table.iloc[:-1], folder / "ranking.parquet", RANKING)
    with caplog.at_level("INFO"):
        run("sample_heldout", folder, listed=[unranked, ranked])
    summary = read_json(folder / "heldout.json")
    assert summary["pairs"] == sorted([ranked, unranked])
    assert (
        summary["not_ranked"] == [unranked]
        and summary["occurrences"][unranked] == table["count"].iloc[-1]
    )
    assert (
        f"1 held-out pairs are not ranked: {unranked} ({table['count'].iloc[-1]} occurrences)"
        in caplog.text
    )
    run("make_splits", folder)
    pairs = read_table(folder / "pairs.parquet", PAIRS)
    split = pairs["image_id"].map(
        read_table(folder / "splits.parquet", SPLIT).set_index("image_id")["split"]
    )
    assert set(split[pair_names(pairs) == unranked]) == {"test_unseen"}


@given(st.integers(5, 100), st.integers(1, 8), st.integers(0, 10**6))
def test_swappable_pairs_are_preferred(n: int, nouns: int, seed: int) -> None:
    """The nouns of preferred pairs occur with other adjectives 1 to 10 times as often as the
    median.
    """
    table = ranking(n).assign(noun=[f"n{i % nouns}" for i in range(n)])
    draw = Draw(prefer_swappable=True)
    drawn = draw_heldout(table, draw, Seeding(seed, "d", "color"))
    assert drawn == draw_heldout(
        table.sample(frac=1, random_state=1), draw, Seeding(seed, "d", "color")
    )
    window = table[table["percentile"].between(25, 75)]
    total = table.groupby("noun")["count"].sum()
    others = dict(zip(pair_names(window), window["noun"].map(total) - window["count"], strict=True))
    median = np.median(list(others.values()))
    preferred = {pair for pair in others if median <= others[pair] <= 10 * median}
    assert len(drawn) == len(set(drawn)) == n_heldout(n, 0.1) and set(drawn) <= set(others)
    assert len(preferred & set(drawn)) == min(len(preferred), len(drawn))


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {},
            "follow the paper's rule (0.1 of the ranked pairs, from percentiles 25 to 75) with "
            "our own draw (seed 0)",
        ),
        (
            {"window": [50, 75]},
            "drawn here with seed 0: 0.1 of the ranked pairs, from percentiles 50 to 75.",
        ),
        (
            {"prefer_swappable": True, "chosen": {}},
            "from percentiles 25 to 75, chosen by what the captions permit.",
        ),
        ({"source": "config"}, "listed in the config"),
    ],
)
def test_notes_say_how_the_pairs_were_chosen(changes: dict, note: str) -> None:
    draw = {
        "pairs": ["a_b"],
        "source": "drawn",
        "window": [25.0, 75.0],
        "fraction": 0.1,
        "prefer_swappable": False,
        "seed": 0,
    }
    assert note in heldout_note(draw | changes)
    # The key of earlier versions.
    old = {"prefer" if key == "prefer_swappable" else key: draw[key] for key in draw}
    with pytest.raises(UserError, match="made by an earlier compclip"):
        heldout_note(old)
