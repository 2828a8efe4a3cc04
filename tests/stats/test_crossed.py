"""Intervals over images, pairs and judges: against loops, and their coverage where the truth is
known.
"""

import numpy as np
import pandas as pd
import pytest

from benchmarks.intervals import (
    DIFFERENCE,
    DOCUMENT,
    EACH_WORLD,
    SCORE_WORLDS,
    SHOWN,
    World,
    measure_coverage,
    short_table,
)
from compclip.report.verdicts import HALF_WIDTHS
from compclip.stats import crossed


def test_components_and_unpaired_differences() -> None:
    """Images and pairs are resampled in a loop, which counts the residual three times."""
    rng = np.random.default_rng(1)
    image, pair = np.repeat(np.arange(40), 6), rng.permutation(np.tile(np.arange(20), 12))
    values = rng.random(240) + rng.normal(0, 0.4, 20)[pair] + rng.normal(0, 0.3, 40)[image]
    cells = crossed.make_cells(
        [f"i{i:02}" for i in image], [f"p{p:02}" for p in pair], values, np.ones(240)
    )
    parts = crossed.components(cells, None)
    loop = []
    for _ in range(3000):
        images, pairs = (np.bincount(rng.integers(0, n, n), minlength=n) for n in (40, 20))
        loop.append(np.average(values, weights=images[image] * pairs[pair]))
    assert cells.mean == pytest.approx(values.mean())
    assert np.var(loop) == pytest.approx(parts.pairs + parts.images + 3 * parts.residual, rel=0.1)
    rng = np.random.default_rng(6)
    image, pair = np.arange(300), np.arange(300) % 10
    sides = [
        crossed.make_cells(image, pair, (rng.random(300) < p).astype(float), np.ones(300))
        for p in (0.8, 0.4)
    ]
    a, b = map(crossed.estimate, sides)
    found = crossed.estimate_difference(a.value - b.value, sides)
    assert found.value - found.low == pytest.approx(
        np.hypot(a.value - a.low, b.high - b.value), rel=0.1
    )
    assert found.high - found.value == pytest.approx(
        np.hypot(a.high - a.value, b.value - b.low), rel=0.1
    )
    assert (found.p < 0.05) == (found.low > 0)


@pytest.mark.parametrize(
    "world",
    [
        *(
            SCORE_WORLDS[f"10 pairs, {name}"]
            for name in ("50 %", "one pair in ten at 0", "40 images")
        ),
        DIFFERENCE,
    ],
)
def test_coverage(world: World) -> None:
    """docs/intervals.md has the same with more trials; four standard errors of 95 % are 3.9 points
    here.
    """
    _, others, these = measure_coverage(world, 500)
    assert (
        others.inside > 0.95
        and 0.911 <= these.inside <= 0.98
        and max(these.below, these.above) < 0.055
    )


def test_the_document_has_the_targets_and_the_widths_that_the_page_names() -> None:
    table = pd.read_csv(EACH_WORLD).set_index("scores")
    assert list(table.index) == [*SCORE_WORLDS]
    for name, world in SCORE_WORLDS.items():
        if world.pairs >= 5 and world.judges > 1:
            least = 92 if world.pairs >= 10 else 88
            assert table.loc[name, "new_pairs_covered"] >= least, name
        most = 99 if "nine pairs" in name else 97
        assert 93 <= table.loc[name, "same_pairs_covered"] <= most, name
    for pairs, half in HALF_WIDTHS.items():
        width = table.loc[f"{pairs} pairs, 50 %", "new_pairs_width"]
        assert width / 2 == pytest.approx(half, abs=0.5)
    # The page shows some of them.
    shown = "\n".join(short_table(table.loc[list(SHOWN)].reset_index()))
    assert shown in DOCUMENT.read_text("utf-8")


def test_few_pairs_and_pairs_as_the_trials_if_all_hits_are_equal() -> None:
    """By hand: with no success among K pairs a fraction f is seen with probability (1 - f)^K."""
    for k in (3, 5, 16):
        low, high = crossed.over_pairs(np.zeros(k), np.ones(k), (0.0, 1.0))
        assert low == 0 and high == pytest.approx(1 - 0.05 ** (1 / k), abs=0.01)
        low, high = crossed.over_pairs(np.ones(k), np.ones(k), (-1.0, 1.0))
        assert high == pytest.approx(1) and low == pytest.approx(
            1 - 2 * (1 - 0.05 ** (1 / k)), abs=0.02
        )
    # Two pairs give wide but finite intervals.
    for few in (1, 50):
        pair = np.repeat([0, 1], [few, 100 - few])
        estimate = crossed.estimate(
            crossed.make_cells(np.arange(100), pair, np.where(pair, 0.2, 0.8), np.ones(100))
        )
        assert 0 <= estimate.low < 0.1 and 0.7 < estimate.high <= 1
    # Five pairs at 0: [0, 52 %]; without pairs, images are the trials.
    image, pair = np.arange(300), np.repeat(np.arange(5), 60)
    none, every = (
        crossed.estimate(crossed.make_cells(image, pair, np.full(300, hit), np.ones(300)))
        for hit in (0.0, 1.0)
    )
    assert (none.low, none.high) == pytest.approx((0, 1 - 0.025 ** (1 / 5)))
    assert (every.low, every.high) == pytest.approx((0.025 ** (1 / 5), 1))
    alone = crossed.estimate(
        crossed.make_cells(image, np.full(300, None), np.zeros(300), np.ones(300))
    )
    assert alone.high == pytest.approx(1 - 0.025 ** (1 / 300))


def test_pairs_that_were_sampled_are_resampled() -> None:
    """With many even pairs, the interval is that of Student; a common factor and the order of pairs
    change nothing.
    """
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 1, 400)
    low, high = crossed.over_pairs(x, np.ones(400), (0.0, 1.0))
    half = 1.966 * x.std(ddof=1) / 20
    assert (low, high) == pytest.approx((x.mean() - half, x.mean() + half), abs=0.003)
    size = rng.uniform(1, 5, 12)
    value = size * rng.random(12)
    found = crossed.over_pairs(value, size, (0.0, 1.0))
    assert crossed.over_pairs(7 * value, 7 * size, (0.0, 1.0)) == pytest.approx(found)
    assert crossed.over_pairs(value[::-1], size[::-1], (0.0, 1.0)) == pytest.approx(found, abs=0.02)
    assert crossed.over_pairs(value, np.where(size > 4, size, -size), (0.0, 1.0)) is None
    # Entries without a pair are not resampled: with many of them the interval is narrow.
    low, high = crossed.over_pairs(value, size, (0.0, 1.0), without_pair=(500.0, 1000.0))
    assert 0.4 < low < 0.5 < high < 0.55


def test_images_are_resampled_within_pairs() -> None:
    """By hand: two pairs of three and two images, whose residuals are from the means of their
    pairs.
    """
    cells = crossed.make_cells(
        np.arange(5), ["a", "a", "a", "b", "b"], np.array([0, 1, 0.5, 1, 0.4]), np.ones(5)
    )
    of_images = 3 / 2 * (0.5**2 + 0.5**2) + 2 * (0.3**2 + 0.3**2)
    of_pairs = (0.5 - 0.58) ** 2 + (0.7 - 0.58) ** 2  # (n (mean - mean of all) / n)²
    assert crossed.variance_within(cells).value == pytest.approx((of_images + of_pairs) / 25)
    assert crossed.variance_within(cells).degrees == 4
    # A cluster of images is resampled whole: the residuals of both pairs add.
    together = crossed.make_cells(
        [0, 1, 2, 0, 1], ["a", "a", "a", "b", "b"], np.array([0, 1, 0.5, 1, 0.4]), np.ones(5)
    )
    a, b = np.sqrt(1.5) * np.array([-0.5, 0.5, 0]), np.sqrt(2) * np.array([0.3, -0.3, 0])
    assert crossed.variance_within(together).value == pytest.approx(
        (((a + b) ** 2).sum() + of_pairs) / 25
    )
    rng = np.random.default_rng(3)
    image, values = np.repeat(np.arange(200), 2), rng.random(400)
    cells = crossed.make_cells(image, np.full(400, None), values, np.ones(400))
    means = values.reshape(200, 2).mean(axis=1)
    assert cells.fewest_units == 200 and crossed.components(cells, None).pairs == 0
    assert crossed.image_variance(cells).value == pytest.approx(means.var(ddof=1) / 200)


def test_judges_add_their_variance_to_differences_within_their_limits() -> None:
    one = crossed.Variance(0.02**2, 11)
    several = one + crossed.judge_variance(np.array([0.05, 0.1, 0.15]))
    assert several.value == pytest.approx(0.02**2 + 0.05**2 / 3) and 2 < several.degrees < 11
    assert one + crossed.judge_variance(None) == one
    narrow, wide = crossed.difference(0.1, one), crossed.difference(0.1, several)
    assert narrow.low > wide.low > -0.1 and narrow.p < wide.p < 0.2
    none, large = crossed.Variance(0.0, 9), crossed.Variance(0.2**2, 20)
    assert crossed.difference(0.0, none) == crossed.Difference(0.0, 0.0, 0.0, 1.0)
    assert crossed.difference(0.25, none) == crossed.Difference(0.25, 0.25, 0.25, 0.0)
    even = crossed.difference(0.0, large)
    assert even.low == -even.high and even.p == 1
    for value in (0.9, -0.9):
        found = crossed.difference(value, large)
        assert (
            max(abs(found.low), abs(found.high)) == 1 and min(abs(found.low), abs(found.high)) < 1
        )
