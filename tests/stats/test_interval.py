"""Bootstrap intervals against naive loops and by hand."""

import numpy as np
import pytest

from compclip.stats import interval


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def clustered(images: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries of images of different sizes, whose values hang together; names, values, weights."""
    generator = rng(seed)
    sizes = generator.integers(1, 8, images)
    index = np.repeat(np.arange(images), sizes)
    values = np.clip(generator.random(images)[index] + 0.1 * generator.standard_normal(len(index)), 0, 1)
    return np.array([f"i{k:03d}" for k in index]), values, generator.choice([0.3, 1.0], len(index))


def test_images_are_resampled_whole_against_a_loop() -> None:
    names, values, weights = clustered()
    ours = interval.mean(names, values, weights, 5000, rng())
    unique = np.unique(names)
    generator = rng(9)
    means = []
    for _ in range(5000):
        drawn = np.concatenate([np.flatnonzero(names == n) for n in generator.choice(unique, len(unique))])
        means.append(np.average(values[drawn], weights=weights[drawn]))
    assert ours.value == pytest.approx(np.average(values, weights=weights))
    assert (ours.low, ours.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.008)
    # Entries alone would pretend to know much more.
    by_entry = interval.mean(np.arange(len(values)), values, weights, 5000, rng())
    assert ours.high - ours.low > 1.5 * (by_entry.high - by_entry.low)


def test_blocks_change_nothing_and_one_image_has_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    names, values, weights = clustered()
    whole = interval.mean(names, values, weights, 300, rng())
    monkeypatch.setattr(interval, "INDICES", 333)
    assert interval.mean(names, values, weights, 300, rng()) == whole
    found = interval.mean(np.array(["a", "a"]), np.array([0.0, 1.0]), np.ones(2), 100, rng())
    assert found == interval.Estimate(0.5, None, None)


def test_all_or_none_is_not_certain() -> None:
    """By hand: with no miss in m images the lower end is the rate at which that happens once in forty times."""
    images = np.repeat([f"i{k}" for k in range(20)], 3)
    ones = np.ones(60)
    end = 0.025 ** (1 / 20)
    assert interval.share(images, ones, ones, 100, rng()) == interval.Estimate(1, pytest.approx(end), 1)
    assert interval.share(images, 0 * ones, ones, 100, rng()) == interval.Estimate(0, 0, pytest.approx(1 - end))
    # An image of weight 0 is no trial, and its misses do not count.
    weights = np.where(images == "i0", 0.0, 0.4)
    hits = np.where(images == "i0", 0.0, 1.0)
    assert interval.share(images, hits, weights, 100, rng()).low == pytest.approx(0.025 ** (1 / 19))
    # Chances that are no certainties are resampled as ever.
    for values in (0.5 * ones, np.where(images == "i0", 0.9, 1.0)):
        assert interval.share(images, values, ones, 100, rng()) == interval.mean(images, values, ones, 100, rng())
