"""R-precision against enumeration of every candidate set, against simulation, and within its
bounds.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.stats import r_precision as precision
from compclip.stats.r_precision import (
    Entries,
    Pool,
    Weights,
    blocks,
    draw_distractors,
    expected_top1,
    judge_entries,
    make_pool,
    sample_distractors,
    sampled,
)


def pools(draw: st.DrawFn) -> tuple[Pool, np.ndarray, int]:
    """A small pool of at least two classes, with texts that images share; its classes by image; its
    texts.
    """
    images = draw(st.integers(2, 5))
    texts = draw(st.integers(1, 5))
    classes = np.array(
        [0, 1, *draw(st.lists(st.integers(0, 3), min_size=images - 2, max_size=images - 2))]
    )
    rows = [
        (i, t)
        for i in range(images)
        for t in draw(st.lists(st.integers(0, texts - 1), min_size=1, max_size=3))
    ]
    of, text = map(np.array, zip(*rows, strict=True))
    return make_pool(of, classes[of], text), classes, texts


def distribution(pool: Pool, of: int) -> list[tuple[float, int]]:
    """(chance, text) of one distractor, by the definition: an eligible image, then one of its
    captions.
    """
    eligible = [p for p in range(pool.images) if pool.classes[p] != of]
    result = []
    for p in eligible:
        own = pool.texts[pool.starts[p] : pool.starts[p + 1]]
        result += [(1 / len(eligible) / len(own), int(text)) for text in own]
    return result


def enumerate_top1(
    similarity: np.ndarray, own: int, pool: Pool, of: int, candidates: int, ties: str
) -> float:
    """The chance of a hit over every ordered set of distractors."""
    total = 0.0
    for drawn in itertools.product(distribution(pool, of), repeat=candidates - 1):
        chance = float(np.prod([p for p, _ in drawn]))
        scores = [similarity[text] for _, text in drawn]
        if max(scores) <= similarity[own]:
            equals = sum(score == similarity[own] for score in scores)
            total += chance / (equals + 1) if ties == "random" else chance
    return total


def score(
    similarity: np.ndarray,
    own: np.ndarray,
    classes: np.ndarray,
    pool: Pool,
    chosen: object = None,
    **options,
):
    """Return the results of the ``chosen`` entries (None: all), each with its own key."""
    settings = {"candidates": 4, "ties": "random", "seed": 0, **options}
    candidates, ties, seed = (settings[name] for name in ("candidates", "ties", "seed"))
    numbers = np.arange(len(own)) if chosen is None else chosen
    entries = Entries(
        own[numbers], classes[numbers], [(f"image{i}", i, 0) for i in numbers.tolist()]
    )
    of = blocks(lambda rows: similarity[numbers[rows]], entries.classes)
    draws = sample_distractors(entries, pool, candidates, seed)
    return judge_entries(of, entries, Weights(pool, similarity.shape[1]), draws, ties)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["random", "own_first"]), st.integers(2, 4))
def test_closed_form_equals_enumeration(data: st.DataObject, ties: str, candidates: int) -> None:
    pool, classes, texts = pools(data.draw)
    n = len(classes)
    # Few values, so that ties are common.
    similarity = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=n * texts, max_size=n * texts)), float
    )
    similarity = similarity.reshape(n, texts)
    own = np.array(data.draw(st.lists(st.integers(0, texts - 1), min_size=n, max_size=n)))
    result = score(similarity, own, classes, pool, candidates=candidates, ties=ties)
    for i in range(n):
        chances = distribution(pool, int(classes[i]))
        mine = similarity[i, own[i]]
        assert result.beaten[i] == pytest.approx(
            sum(p for p, text in chances if similarity[i, text] > mine)
        )
        assert result.tied[i] == pytest.approx(
            sum(p for p, text in chances if similarity[i, text] == mine)
        )
        expected = enumerate_top1(similarity[i], own[i], pool, int(classes[i]), candidates, ties)
        assert result.expected[i] == pytest.approx(expected, abs=1e-12)


@given(st.floats(0, 0.9), st.floats(1e-18, 1e-3))
def test_tiny_ties_lose_nothing(beaten: float, tied: float) -> None:
    """Against exact rational arithmetic."""
    from fractions import Fraction

    g, t = Fraction(beaten), Fraction(tied)
    exact = ((1 - g) ** 100 - (1 - g - t) ** 100) / (100 * t)
    value = expected_top1(np.array([beaten]), np.array([tied]))[0]
    assert value == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("ties", ["random", "own_first"])
def test_sampled_converges_to_exact(ties: str) -> None:
    generator = np.random.default_rng(1)
    images, texts, draws = 12, 30, 4000
    of = np.repeat(np.arange(images), generator.integers(1, 5, images))
    classes = np.arange(images) // 3
    pool = make_pool(of, classes[of], generator.integers(0, texts, len(of)))
    similarity = generator.integers(0, 6, (images, texts)).astype(float)
    own = similarity.argsort(axis=1, kind="stable")[:, -5]
    rows = np.tile(np.arange(images), draws)
    result = score(similarity[rows], own[rows], classes[rows], pool, candidates=8, ties=ties)
    error = np.sqrt(0.25 / len(rows))
    assert abs(result.hit.mean() - result.expected.mean()) < 4 * error
    assert 0.1 < result.expected.mean() < 0.9


def test_distractors_follow_their_distribution_and_stay_in_the_pool() -> None:
    pool = make_pool(
        np.array([0, 0, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 4, 0])
    )
    n = 60_000
    uniform = np.random.default_rng(0).random((n, 2, 1))
    drawn = pool.texts[draw_distractors(uniform, pool, np.full(n, 1))[:, 0]]
    # Class 1 draws from image 0 (texts 0, 1) and image 1 (text 2), images alike.
    assert np.bincount(drawn, minlength=5) / n == pytest.approx([0.25, 0.25, 0.5, 0, 0], abs=0.01)
    # A class that is not in the pool may draw from all of it.
    drawn = pool.texts[draw_distractors(uniform, pool, np.full(n, 7))[:, 0]]
    assert np.bincount(drawn, minlength=5) / n == pytest.approx(
        [1 / 6 + 1 / 9, 1 / 6, 1 / 3, 1 / 9, 1 / 9], abs=0.01
    )
    for sizes in ([1, 2, 3], [7] * 49, [10] * 1000):
        of = np.repeat(np.arange(len(sizes)), sizes)
        pool = make_pool(of, of, np.arange(len(of)))
        uniform = np.full((1, 2, 1), np.nextafter(1, 0))
        assert draw_distractors(uniform, pool, np.array([0]))[0, 0] == len(of) - 1


def test_a_hit_depends_on_its_own_key_alone() -> None:
    """Neither the order of the entries, nor which others there are, nor the block changes a row."""
    generator = np.random.default_rng(3)
    n, texts = 700, 40
    classes = generator.integers(0, 5, n)
    pool = make_pool(np.arange(n), classes, generator.integers(0, texts, n))
    similarity = generator.random((n, texts))
    own = generator.integers(0, texts, n)
    shuffled = generator.permutation(n)[:500]
    whole, part = (
        score(similarity, own, classes, pool, of, candidates=5, seed=1) for of in (None, shuffled)
    )
    for name in ("similarity", "beaten", "tied", "expected", "hit"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)[shuffled]), name
    assert 0.05 < whole.hit.mean() < 0.95


@pytest.mark.parametrize(
    "images", [10, 30, 60]
)  # float32, float64, and a least common multiple above 2^53
def test_weights_are_those_of_the_definition(images: int) -> None:
    """An own caption that beats every distractor is beaten with chance 0, not with a rounding
    error.
    """
    of = np.repeat(np.arange(images), np.arange(1, images + 1))
    text = np.random.default_rng(0).integers(0, 40, len(of))
    pool = make_pool(of, of // 3, text)
    weights = precision.Weights(pool, 40)
    for kind in (1, 0, images, 1):
        counted, total = weights.of(kind)
        chances = np.zeros(40)
        for chance, drawn in distribution(pool, kind):
            chances[drawn] += chance
        assert counted.sum() == total and counted / total == pytest.approx(chances, rel=1e-6)
        assert ((counted == 0) == (chances == 0)).all()
    assert weights.weights.dtype == (np.float32 if images == 10 else np.float64)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 12), st.integers(0, 5))
def test_chunks_lose_nothing(hits: list[bool], chunks: int, seed: int) -> None:
    mean, deviation = sampled(hits, chunks, seed)
    assert mean == pytest.approx(np.mean(hits))
    assert 0 <= deviation <= 0.5
    if chunks == 1:
        assert deviation == 0
