"""The draw of the held-out pairs."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names, split_pair
from workflow_scripts.split.sample_heldout import check_listed, sample_heldout, wanted_pairs


def ranking(n: int) -> pd.DataFrame:
    rank = list(range(1, n + 1))
    return pd.DataFrame(
        {
            "adjective": [f"a{i}" for i in rank],
            "noun": [f"n{i}" for i in rank],
            "count": rank[::-1],
            "images": rank[::-1],
            "rank": rank,
            "percentile": [100 * (i - 0.5) / n for i in rank],
        }
    )


def test_half_rounds_up() -> None:
    assert [wanted_pairs(n, 0.1) for n in (4, 5, 14, 15, 298, 287)] == [0, 1, 1, 2, 30, 29]
    assert wanted_pairs(50, 0.29) == 15  # 14.5, which floats make 14.499999999999998


@given(st.integers(1, 500), st.integers(1, 99))
def test_wanted_is_the_rounded_share(n: int, percent: int) -> None:
    exact = Fraction(percent, 100) * n
    assert wanted_pairs(n, percent / 100) == int(exact + Fraction(1, 2))


@given(st.integers(5, 300), st.integers(0, 10**6))
def test_drawn_between_the_quartiles_without_replacement(n: int, seed: int) -> None:
    table = ranking(n)
    drawn = sample_heldout(table, 0.1, (25, 75), seed, "d", "color")
    assert len(drawn) == len(set(drawn)) == wanted_pairs(n, 0.1)
    place = table.set_index(pair_names(table))["percentile"]
    assert all(25 <= place[pair] <= 75 for pair in drawn)
    assert drawn == sorted(drawn)
    assert drawn == sample_heldout(table.sample(frac=1, random_state=1), 0.1, (25, 75), seed, "d", "color")


def test_seed_dataset_and_composition_decide() -> None:
    table = ranking(298)
    draws = [
        tuple(sample_heldout(table, 0.1, (25, 75), *key))
        for key in ((0, "d", "color"), (1, "d", "color"), (0, "e", "color"), (0, "d", "shape"))
    ]
    assert len(set(draws)) == 4


def test_every_pair_of_the_window_can_be_drawn() -> None:
    drawn = {pair for seed in range(300) for pair in sample_heldout(ranking(20), 0.1, (25, 75), seed, "d", "c")}
    assert drawn == {f"a{i}_n{i}" for i in range(6, 16)}


def test_too_little_to_hold_out() -> None:
    with pytest.raises(UserError, match="4 ranked pairs, and 10% of them is less than one"):
        sample_heldout(ranking(4), 0.1, (25, 75), 0, "d", "color")
    with pytest.raises(UserError, match="12 pairs to hold out, but only 10 of 20"):
        sample_heldout(ranking(20), 0.6, (25, 75), 0, "d", "color")


def test_a_listed_pair_must_be_ranked() -> None:
    assert check_listed(ranking(20), ["a7_n7", "a3_n3"], "d", "color") == ["a3_n3", "a7_n7"]
    with pytest.raises(UserError, match="'a3_n33' is not among the 20 ranked pairs of d/color; the nearest are a3_n3"):
        check_listed(ranking(20), ["a3_n33"], "d", "color")
    with pytest.raises(UserError, match="stands twice"):
        check_listed(ranking(20), ["a3_n3", "a3_n3"], "d", "color")
    with pytest.raises(UserError, match="nothing is left"):
        check_listed(ranking(2), ["a1_n1", "a2_n2"], "d", "color")


def test_names_go_both_ways() -> None:
    assert split_pair("black_eye ring") == ("black", "eye ring")
