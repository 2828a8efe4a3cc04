"""Bootstrap intervals against naive loops, and balancing by listing 1 of the appendix, worked by
hand.
"""

import numpy as np
import pytest

from compclip.stats import interval
from compclip.stats.balance import cap_dominant, subsample, weights


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def clustered(images: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries of images of different sizes, whose values hang together; names, values, weights."""
    generator = rng(seed)
    sizes = generator.integers(1, 8, images)
    index = np.repeat(np.arange(images), sizes)
    values = np.clip(
        generator.random(images)[index] + 0.1 * generator.standard_normal(len(index)), 0, 1
    )
    return np.array([f"i{k:03d}" for k in index]), values, generator.choice([0.3, 1.0], len(index))


def test_images_are_resampled_whole_against_a_loop() -> None:
    names, values, weights = clustered()
    ours = interval.bootstrap_mean(names, values, weights, 5000, rng())
    unique = np.unique(names)
    generator = rng(9)
    means = []
    for _ in range(5000):
        drawn = np.concatenate(
            [np.flatnonzero(names == n) for n in generator.choice(unique, len(unique))]
        )
        means.append(np.average(values[drawn], weights=weights[drawn]))
    assert ours.value == pytest.approx(np.average(values, weights=weights))
    assert (ours.low, ours.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.008)
    # Entries alone would pretend to know much more.
    by_entry = interval.bootstrap_mean(np.arange(len(values)), values, weights, 5000, rng())
    assert ours.high - ours.low > 1.5 * (by_entry.high - by_entry.low)


def test_all_or_none_is_not_certain_and_blocks_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand: with no miss in m images the lower end is the rate at which that happens once in
    forty times.
    """
    images = np.repeat([f"i{k}" for k in range(20)], 3)
    ones = np.ones(60)
    end = 0.025 ** (1 / 20)
    assert interval.bootstrap_fraction(images, ones, ones, 100, rng()) == interval.Estimate(
        1, pytest.approx(end), 1
    )
    assert interval.bootstrap_fraction(images, 0 * ones, ones, 100, rng()) == interval.Estimate(
        0, 0, pytest.approx(1 - end)
    )
    # An image of weight 0 is no trial, and its misses do not count.
    weights = np.where(images == "i0", 0.0, 0.4)
    hits = np.where(images == "i0", 0.0, 1.0)
    assert interval.bootstrap_fraction(images, hits, weights, 100, rng()).low == pytest.approx(
        0.025 ** (1 / 19)
    )
    # Chances that are no certainties are resampled as ever.
    for values in (0.5 * ones, np.where(images == "i0", 0.9, 1.0)):
        assert interval.bootstrap_fraction(
            images, values, ones, 100, rng()
        ) == interval.bootstrap_mean(images, values, ones, 100, rng())
    names, values, weights = clustered()
    whole = interval.bootstrap_mean(names, values, weights, 300, rng())
    monkeypatch.setattr(interval, "INDICES", 333)
    assert interval.bootstrap_mean(names, values, weights, 300, rng()) == whole
    found = interval.bootstrap_mean(
        np.array(["a", "a"]), np.array([0.0, 1.0]), np.ones(2), 100, rng()
    )
    assert found == interval.Estimate(0.5, None, None)


@pytest.mark.parametrize(
    ("counts", "dominant", "kept"),
    [
        # int(1.25 * 19) = int(23.75)
        ({"purple_bill": 50, "tan_wing": 19, "red_head": 9}, 1, {"purple_bill": 23}),
        # Both to int(1.25 * 9) = 11: each by itself, where the listing takes min(first, 1.25 *
        # third) for both.
        (
            {"purple_bill": 50, "tan_wing": 40, "red_head": 9, "blue_eye": 1},
            2,
            {"purple_bill": 11, "tan_wing": 11},
        ),
        # The released code samples more than there are, and fails.
        (
            {"purple_bill": 50, "tan_wing": 10, "red_head": 9},
            2,
            {"purple_bill": 11, "tan_wing": 10},
        ),
        # No pair dominates; ties are ordered by name.
        ({"purple_bill": 10, "tan_wing": 9}, 1, {"purple_bill": 10}),
        ({"b_x": 5, "a_x": 5, "c_x": 1}, 1, {"a_x": 5}),
        # Too few pairs, for which the released code fails too.
        ({}, 1, {}),
        ({"a_b": 3}, 1, {}),
        ({"a_b": 3, "c_d": 2}, 2, {}),
    ],
)
def test_by_hand(counts: dict[str, int], dominant: int, kept: dict[str, int]) -> None:
    pairs = [pair for pair, n in counts.items() for _ in range(n)]
    cap = cap_dominant(pairs, dominant)
    chosen, weight = subsample(pairs, cap, seed=0), weights(pairs, cap)
    assert cap.kept == kept and cap.rule.startswith("no cut") == (not kept)
    for pair, n in counts.items():
        rows = np.array(pairs) == pair
        assert chosen[rows].sum() == kept.get(pair, n)
        assert weight[rows] == pytest.approx(kept.get(pair, n) / n)
