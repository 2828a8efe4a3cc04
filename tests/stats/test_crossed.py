"""Intervals over images, pairs and judges: against loops, and their coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.intervals import FLOOR, World, coverage
from workflow_scripts.stats import crossed


def test_resampling_against_a_loop() -> None:
    rng = np.random.default_rng(1)
    image, pair, weights = rng.integers(0, 30, 200), rng.integers(0, 6, 200), rng.choice([0.0, 0.5, 1.0], 200)
    values = rng.random((200, 2)) + pair[:, None] / 6
    cells = crossed.cells([f"i{i:02}" for i in image], [f"p{p}" for p in pair], values, weights)
    assert cells.means == pytest.approx(np.average(values, axis=0, weights=weights))
    ours = crossed.resampled_means(cells, 1500, np.random.default_rng(2))
    loop = []
    for _ in range(1500):
        images, pairs = rng.integers(0, 30, 30), rng.integers(0, 6, 6)
        counts = weights * [(images == i).sum() * (pairs == p).sum() for i, p in zip(image, pair, strict=True)]
        loop.append(np.average(values, axis=0, weights=counts))
    assert ours.mean(axis=0) == pytest.approx(np.mean(loop, axis=0), abs=0.02)
    assert ours.std(axis=0) == pytest.approx(np.std(loop, axis=0), rel=0.1)


@pytest.mark.parametrize("world", [World(0, 300, 10), World(-1.1, 300, 16), FLOOR])
def test_coverage(world: World) -> None:
    got = coverage(world, 400)
    assert got.inside >= 0.92 and max(got.below, got.above) < 0.06
    assert got.inside <= 0.98 or world is FLOOR


def test_only_images_are_resampled_where_no_entry_has_a_pair() -> None:
    rng = np.random.default_rng(3)
    image, values = np.repeat(np.arange(200), 2), rng.random((400, 1))
    cells = crossed.cells(image, np.full(400, None), values, np.ones(400))
    draws = crossed.resampled_means(cells, 2000, rng)[:, 0]
    assert cells.clusters == 200 and crossed.components(cells, None).pairs == 0
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.15)


def test_differences_by_judge() -> None:
    draws = np.random.default_rng(0).normal(0.1, 0.02, 2000)
    one = crossed.difference(0.1, draws, 12, None)
    several = crossed.difference(0.1, draws, 12, np.array([0.05, 0.1, 0.15]))
    assert one.low > several.low > -0.1 and one.p < several.p < 0.2
