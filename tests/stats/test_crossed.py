"""Intervals over images, pairs and judges: against loops, and their coverage where the truth is known."""

import numpy as np
import pytest

from benchmarks.intervals import DIFFERENCE, FLOOR, RESULT_PAGE, WORLDS, MadeUpWorld, coverage
from compclip.report.verdicts import HALF_WIDTHS
from compclip.stats import crossed


def test_the_variance_is_that_of_resampling_with_the_residual_once() -> None:
    """Images and pairs are resampled in a loop; the closed form counts the residual three times."""
    rng = np.random.default_rng(1)
    image, pair = np.repeat(np.arange(40), 6), rng.permutation(np.tile(np.arange(20), 12))
    values = rng.random(240) + rng.normal(0, 0.4, 20)[pair] + rng.normal(0, 0.3, 40)[image]
    cells = crossed.cells([f"i{i:02}" for i in image], [f"p{p:02}" for p in pair], values, np.ones(240))
    parts, ours = crossed.components(cells, None), crossed.variance(cells)
    loop = []
    for _ in range(3000):
        images, pairs = (np.bincount(rng.integers(0, n, n), minlength=n) for n in (40, 20))
        loop.append(np.average(values, weights=images[image] * pairs[pair]))
    assert cells.mean == pytest.approx(values.mean())
    assert np.var(loop) == pytest.approx(parts.pairs + parts.images + 3 * parts.residual, rel=0.1)
    # All pairs are equally frequent: effects of K pairs are corrected by K / (K - 1) and have K - 1 degrees of freedom.
    images = (parts.images + parts.residual) * 40 / 39
    assert ours.value == pytest.approx(parts.pairs * 20 / 19 + images)
    spread = (parts.pairs * 20 / 19) ** 2 / 19 + images**2 / 39
    assert ours.degrees == pytest.approx(ours.value**2 / spread)


def test_the_part_of_unequally_frequent_pairs_is_unbiased() -> None:
    """Effects of variance 1 of six pairs, of which one has half of the weight, and nothing else."""
    rng = np.random.default_rng(2)
    w = np.array([50, 20, 10, 10, 5, 5])
    pair = np.repeat(np.arange(6), w)
    expected = ((w / 100) ** 2).sum()
    values = [
        crossed.variance(crossed.cells(np.arange(100), pair, rng.normal(0, 1, 6)[pair], np.ones(100))).value
        for _ in range(3000)
    ]
    assert np.mean(values) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("world", [*(WORLDS[f"{pairs} pairs, 600 images"] for pairs in (10, 16)), DIFFERENCE, FLOOR])
def test_coverage(world: MadeUpWorld) -> None:
    """docs/intervals.md has the same with more trials, 93 to 97 %; a standard error is 0.8 points here."""
    got = coverage(world, 800)
    assert 0.93 <= got.inside <= (0.99 if world is FLOOR else 0.97) and max(got.below, got.above) < 0.045
    assert world is not FLOOR or abs(got.below - got.above) < 0.01


def test_the_document_has_the_coverage_and_the_widths_that_the_page_names() -> None:
    rows = [
        [c.strip() for c in line.split("|")[1:-1]] for line in RESULT_PAGE.read_text("utf-8").split("\n") if "|" in line
    ]
    by_name = {name: list(map(float, cells)) for name, *cells in rows[2:]}
    assert set(by_name) == set(WORLDS)
    for name, world in WORLDS.items():
        _, covered, below, above, width = by_name[name]
        if world.pairs >= 10 and world.judges >= 3:
            assert 93 <= covered <= (99 if "floor" in name else 97), name
            assert max(below, above) < 4.5 and ("floor" not in name or abs(below - above) < 1)
    for pairs, half in HALF_WIDTHS.items():
        assert by_name[f"{pairs} pairs, 600 images"][-1] / 2 == pytest.approx(half, abs=0.5)


def test_only_images_count_where_no_entry_has_a_pair() -> None:
    rng = np.random.default_rng(3)
    image, values = np.repeat(np.arange(200), 2), rng.random(400)
    cells = crossed.cells(image, np.full(400, None), values, np.ones(400))
    means = values.reshape(200, 2).mean(axis=1)
    assert cells.clusters == 200 and crossed.components(cells, None).pairs == 0
    assert crossed.variance(cells).value >= means.var(ddof=1) / 200 - 1e-12


def test_judges_add_their_variance() -> None:
    one = crossed.Variance(0.02**2, 11)
    several = one + crossed.of_judges(np.array([0.05, 0.1, 0.15]))
    assert several.value == pytest.approx(0.02**2 + 0.05**2 / 3) and 2 < several.degrees < 11
    assert one + crossed.of_judges(None) == one
    narrow, wide = crossed.difference(0.1, one), crossed.difference(0.1, several)
    assert narrow.low > wide.low > -0.1 and narrow.p < wide.p < 0.2


@pytest.mark.parametrize("few", [1, 50])
def test_two_pairs_give_wide_but_finite_intervals(few: int) -> None:
    image, pair = np.arange(100), np.repeat([0, 1], [few, 100 - few])
    cells = crossed.cells(image, pair, np.where(pair, 0.2, 0.8), np.ones(100))
    estimate = crossed.fraction(cells.mean, crossed.variance(cells), 100)
    assert 0 <= estimate.low < 0.1 and 0.7 < estimate.high <= 1


def test_differences_of_0_without_variance_and_at_their_limit() -> None:
    image, pair = np.arange(100), np.repeat(np.arange(10), 10)
    equal = crossed.cells(image, pair, np.zeros(100), np.ones(100))
    assert crossed.difference(equal.mean, crossed.variance(equal)) == crossed.Difference(0.0, 0.0, 0.0, 1.0)
    # Equal on average, but not for each image.
    mixed = crossed.cells(image, pair, np.tile([0.5, -0.5], 50), np.ones(100))
    found = crossed.difference(mixed.mean, crossed.variance(mixed))
    assert found.value == pytest.approx(0) and found.low == pytest.approx(-found.high) and 0.05 < found.high < 0.2
    assert found.p == pytest.approx(1)
    assert crossed.difference(0.25, crossed.Variance(0.0, 9)) == crossed.Difference(0.25, 0.25, 0.25, 0.0)
    wide = crossed.Variance(0.2**2, 20)
    for value, limit in ((0.9, 1.0), (-0.9, 1.0), (1.8, 2.0)):
        found = crossed.difference(value, wide, limit)
        assert max(abs(found.low), abs(found.high)) == limit and min(abs(found.low), abs(found.high)) < limit
