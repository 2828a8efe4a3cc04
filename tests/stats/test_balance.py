"""Balancing against listing 1 of the appendix, worked by hand, and where the released code fails."""

import numpy as np
import pytest

from compclip.stats.balance import cut_dominant, subsample, weights


def entries(**counts: int) -> list[str]:
    return [pair for pair, n in counts.items() for _ in range(n)]


@pytest.mark.parametrize(
    ("counts", "kept"),
    [
        # int(1.25 * 19) = int(23.75)
        ({"purple_bill": 50, "tan_wing": 19, "red_head": 9}, {"purple_bill": 23}),
        # Both to int(1.25 * 9) = 11: each by itself, where the listing takes min(first, 1.25 * third) for both.
        ({"purple_bill": 50, "tan_wing": 40, "red_head": 9, "blue_eye": 1}, {"purple_bill": 11, "tan_wing": 11}),
        # The released code samples more than there are, and fails.
        ({"purple_bill": 50, "tan_wing": 10, "red_head": 9}, {"purple_bill": 11, "tan_wing": 10}),
        # No pair dominates; ties are ordered by name.
        ({"purple_bill": 10, "tan_wing": 9}, {"purple_bill": 10}),
        ({"b_x": 5, "a_x": 5, "c_x": 1}, {"a_x": 5}),
    ],
)
def test_by_hand(counts: dict[str, int], kept: dict[str, int]) -> None:
    pairs = entries(**counts)
    cut = cut_dominant(pairs, dominant=len(kept))
    assert cut.kept == kept
    for pair, n in counts.items():
        rows = np.array(pairs) == pair
        assert subsample(pairs, cut, seed=0)[rows].sum() == kept.get(pair, n)
        assert weights(pairs, cut)[rows] == pytest.approx(kept.get(pair, n) / n)


@pytest.mark.parametrize(("counts", "dominant"), [({}, 1), ({"a_b": 3}, 1), ({"a_b": 3, "c_d": 2}, 2)])
def test_too_few_pairs(counts: dict[str, int], dominant: int) -> None:
    """The released code fails here too."""
    pairs = entries(**counts)
    cut = cut_dominant(pairs, dominant=dominant)
    assert not cut.kept and cut.rule.startswith("no cut")
    assert (weights(pairs, cut) == 1).all() and subsample(pairs, cut, 0).all()
