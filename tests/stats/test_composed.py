"""The fraction composed: by hand, against plain resampling, its properties, and its coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.intervals import BY_PAIR, MIX, Mixture, measure_coverage
from compclip.stats import crossed
from compclip.stats.composed import fraction_composed, fractions_composed, shared_level, word


def scores(seed: int = 0, images: int = 60, pairs: int = 6, judges: int = 3) -> tuple[np.ndarray, ...]:
    """Scores of habit and the reference, (judges, 2 entries an image), and the pair and the image of each entry."""
    rng = np.random.default_rng(seed)
    pair, image = np.repeat(np.arange(images) % pairs, 2), np.repeat(np.arange(images), 2)
    reads = rng.uniform(0.6, 0.9, pairs)[pair]
    h, r = (rng.random((judges, 2 * images)) < skill for skill in (0.1, reads))
    return h.astype(float), r.astype(float), pair, image


def mixed(h: np.ndarray, r: np.ndarray, fraction: float, seed: int = 1) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(h.shape[1]) < fraction, r, h)


def test_by_hand_and_words() -> None:
    """Pair a: two prompts, G - H = 1/2, R - H = 1; pair b: one prompt, G - H = 0, R - H = 1/2, on average of judges."""
    h, r = np.array([[0, 0, 0], [0, 0, 1]]), np.array([[1, 1, 1], [1, 1, 1]])
    g, pair = np.array([[1, 0, 0], [0, 1, 1]]), ["a", "a", "b"]
    h, r, g, pair = np.tile(h, 9), np.tile(r, 9), np.tile(g, 9), pair * 9  # so that it is measurable
    found = fraction_composed(g, h, r, pair)
    assert found.value == pytest.approx((2 * 0.5 + 0) / (2 * 1 + 0.5))
    assert found.pairs == ("a", "b") and found.evidence == pytest.approx([2 / 2.5, 0.5 / 2.5])
    assert found.decides == "a"  # more than half of the evidence
    assert fraction_composed(g, h, r, pair, equal_pairs=True).value == pytest.approx(0.5 / 1.5)
    assert fraction_composed(g, h, r, pair, weights=[1, 0, 1] * 9).value == pytest.approx(0.5 / 1.5)
    for low, high, expected in (
        (-0.05, 0.1, "memorizes"), (0.1, 0.4, "hardly composes"), (0.41, 0.59, "half"), (0.6, 0.9, "mostly composes"),
        (0.9, 1.2, "composes"), (0.3, 0.5, "hardly to half"), (0.05, 0.95, "memorizes to composes"),
        (0.85, 0.95, "mostly to composes"), (0.4, 0.4, "half"),
    ):  # fmt: skip
        assert word(low, high) == expected


@given(st.floats(0.1, 10), st.floats(-3, 3), st.integers(0, 20))
@settings(max_examples=20, deadline=None)
def test_an_affine_change_of_scores_changes_nothing(scale: float, shift: float, seed: int) -> None:
    h, r, pair, image = scores(seed)
    g = mixed(h, r, 0.4, seed)
    a = fraction_composed(g, h, r, pair, clusters=image)
    b = fraction_composed(*(scale * of + shift for of in (g, h, r)), pair, clusters=image)
    for name in ("value", "same_pairs_low", "same_pairs_high", "new_pairs_low", "new_pairs_high"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-6)
    assert a.word == b.word and a.decides == b.decides


@given(st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_habit_is_0_and_the_reference_1(seed: int) -> None:
    h, r, pair, image = scores(seed)
    habit, reference = (fraction_composed(g, h, r, pair, clusters=image) for g in (h, r))
    assert (habit.value, habit.same_pairs_low, habit.same_pairs_high, habit.word) == (0, 0, 0, "memorizes")
    assert reference.value == 1 and reference.same_pairs_low == pytest.approx(1) and reference.word == "composes"
    # Six pairs that are alike allow for some that are not, as Clopper and Pearson's bound on unequally weighted pairs.
    assert habit.new_pairs_low == pytest.approx(0)
    assert habit.new_pairs_high == pytest.approx(1 - 0.05 ** (1 / 6), abs=0.05)
    assert reference.new_pairs_high == pytest.approx(1)
    assert reference.new_pairs_low == pytest.approx(1 - habit.new_pairs_high)


def test_mixtures_come_out_and_intervals_cover_together() -> None:
    h, r, pair, image = scores(images=1200, pairs=12)
    values = [fraction_composed(mixed(h, r, p), h, r, pair, clusters=image).value for p in np.linspace(0, 1, 11)]
    assert values == pytest.approx(np.linspace(0, 1, 11), abs=0.05) and (np.diff(values) > 0).all()
    for k in range(13):
        found = fraction_composed(np.where(pair < k, r, h), h, r, pair, clusters=image)
        assert found.value == pytest.approx(k / 12, abs=0.05)
    covered = 0
    for seed in range(80):
        h, r, pair, image = scores(seed)
        rng = np.random.default_rng(seed)
        generators = [np.where(rng.random(h.shape[1]) < 0.5, r, h) for _ in range(4)]
        found = fractions_composed(generators, h, r, pair, clusters=image)
        covered += all(of.same_pairs_low <= 0.5 <= of.same_pairs_high for of in found)
    assert covered / 80 >= 0.87  # standard error 2.4 points


def test_fiellers_set_what_is_not_measurable_and_one_pair_that_decides() -> None:
    """Fieller's set is where the difference is not far from 0."""
    h, r, pair, image = scores()
    g = mixed(h, r, 0.5)
    found = fraction_composed(g, h, r, pair, clusters=image)
    assert found.same_pairs_low is not None and found.same_pairs_high is not None
    for theta in (found.same_pairs_low, found.same_pairs_high):
        z = (g - h - theta * (r - h)).mean(axis=0)
        error = crossed.variance_within(crossed.cells(image, pair, z, np.ones(len(z))))
        assert abs(z.mean()) == pytest.approx(error.half_width())
    none = fraction_composed(h, h, h, pair, clusters=image)
    assert none.value is None and none.why == "reference minus habit is 0.000 [0.000, 0.000], which may be 0"
    assert fraction_composed(h, r, h, pair).value is None  # habit is better
    one = fraction_composed(r[:1], h[:1], r[:1], pair)
    assert one.value == 1 and one.same_pairs_low is not None and one.new_pairs_low is None and one.word is None
    assert "one judge" in str(one.why)
    assert "one pair" in str(fraction_composed(r, h, r, np.zeros(len(pair))).why)
    assert fraction_composed(r, h, r, pair, clusters=np.zeros(len(pair))).value is None
    with pytest.raises(ValueError, match="finite"):
        fraction_composed(np.where(h, np.nan, h), h, r, pair)
    assert fraction_composed(mixed(h, r, 0.5), h, r, pair).decides is None
    read = np.where(pair == 2, r, h)  # the judges can read one pair
    assert fraction_composed(h, h, read, pair).decides == "2"


def test_simultaneous_levels() -> None:
    """Independent errors have Šidák's level, equal errors that of one; correlated ones are between."""
    a, b, c = np.eye(3)
    assert shared_level([a, b, c]) == pytest.approx(0.95 ** (1 / 3), abs=0.001)
    assert shared_level([a, a, a]) == pytest.approx(0.95, abs=0.001)
    assert shared_level([a]) == 0.95 and shared_level([a, 0 * a]) == 0.95
    assert 0.951 < shared_level([a, a + b]) < 0.975
    h, r, pair, image = scores()
    generators = [mixed(h, r, p, seed) for seed, p in enumerate((0.2, 0.5, 0.8))]
    together = fractions_composed(generators, h, r, pair, clusters=image)
    for g, found in zip(generators, together, strict=True):
        alone = fraction_composed(g, h, r, pair, clusters=image)
        assert found.value == alone.value and found.same_pairs_low < alone.same_pairs_low
        assert alone.same_pairs_high < found.same_pairs_high
    assert fractions_composed([h], h, r, pair)[0].new_pairs_high == fraction_composed(h, h, r, pair).new_pairs_high


@pytest.mark.parametrize("world", [MIX, BY_PAIR, Mixture(score=0.0), Mixture(score=1.0, images=40)])
def test_coverage(world: Mixture) -> None:
    """docs/intervals.md has the same with more trials; four standard errors of 95 % are 4.4 points here."""
    trials, others, these = measure_coverage(world, 400)
    assert others.inside > 0.9 and 0.906 <= these.inside <= 0.99
    assert isinstance(trials[0].value, float)
