"""The draw of the held-out pairs."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names, split_pair
from workflow_scripts.core.tables import RANKING
from workflow_scripts.split.config import Draw
from workflow_scripts.split.sample_heldout import check_listed, n_heldout, sample_heldout


def ranking(n: int) -> pd.DataFrame:
    rows = [(f"a{i}", f"n{i}", n + 1 - i, n + 1 - i, i, 100 * (i - 0.5) / n) for i in range(1, n + 1)]
    return pd.DataFrame(rows, columns=list(RANKING.columns))


def test_half_rounds_up() -> None:
    assert [n_heldout(n, 0.1) for n in (4, 5, 14, 15, 298, 287)] == [0, 1, 1, 2, 30, 29]
    assert n_heldout(50, 0.29) == 15  # 14.5, which floats make 14.499999999999998


@given(st.integers(1, 500), st.integers(1, 99))
def test_the_number_is_the_rounded_fraction(n: int, percent: int) -> None:
    exact = Fraction(percent, 100) * n
    assert n_heldout(n, percent / 100) == int(exact + Fraction(1, 2))


@given(st.integers(5, 300), st.integers(0, 10**6))
def test_drawn_between_the_quartiles_without_replacement(n: int, seed: int) -> None:
    table = ranking(n)
    drawn = sample_heldout(table, Draw(), seed, "d", "color")
    assert len(drawn) == len(set(drawn)) == n_heldout(n, 0.1)
    place = table.set_index(pair_names(table))["percentile"]
    assert all(25 <= place[pair] <= 75 for pair in drawn)
    assert drawn == sorted(drawn)
    assert drawn == sample_heldout(table.sample(frac=1, random_state=1), Draw(), seed, "d", "color")


def test_seed_dataset_and_composition_decide() -> None:
    table = ranking(298)
    keys = (0, "d", "color"), (1, "d", "color"), (0, "e", "color"), (0, "d", "shape")
    assert len({tuple(sample_heldout(table, Draw(), *key)) for key in keys}) == 4


def test_every_pair_of_the_window_can_be_drawn() -> None:
    drawn = {pair for seed in range(300) for pair in sample_heldout(ranking(20), Draw(), seed, "d", "c")}
    assert drawn == {f"a{i}_n{i}" for i in range(6, 16)}


@pytest.mark.parametrize(
    ("n", "choice", "message"),
    [
        (4, Draw(), "10% of 4 ranked pairs is less than one pair"),
        (20, Draw(fraction=0.6), "12 pairs must be held out, but only 10 of 20"),
        (20, ["a3_n33"], "'a3_n33' is not among the 20 ranked pairs of d/color; did you mean a3_n3"),
        (20, ["a3_n3", "a3_n3"], "duplicate entry 'a3_n3'; remove one"),
        (2, ["a1_n1", "a2_n2"], "all 2 ranked pairs are held out"),
    ],
)
def test_what_cannot_be_held_out(n: int, choice: Draw | list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        if isinstance(choice, Draw):
            sample_heldout(ranking(n), choice, 0, "d", "color")
        else:
            check_listed(ranking(n), choice, "d", "color")


def test_listed_pairs_are_sorted_and_names_go_both_ways() -> None:
    assert check_listed(ranking(20), ["a7_n7", "a3_n3"], "d", "color") == ["a3_n3", "a7_n7"]
    assert split_pair("black_eye ring") == ("black", "eye ring")
