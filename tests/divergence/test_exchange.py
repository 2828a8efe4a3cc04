"""Exchanges: what they say is reached is what is there, and on small cases they find the best division."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.divergence.exchange import State, exchange, fill
from compclip.divergence.kernels import Goal, score
from compclip.divergence.measure import measure
from compclip.divergence.samples import Samples, from_bags
from tests.divergence.random_samples import adjective_noun_bags, all_divisions

GOAL = Goal(atom=0.02, compound=1.0, bound=False)


def weighed(n: int, seed: int) -> Samples:
    """Samples whose compounds have weights such as W(G, R): sums of them are rounded."""
    atoms, compounds = adjective_noun_bags(n, seed=seed, adjectives=5, nouns=5)
    generator = np.random.default_rng(seed)
    return from_bags(atoms, [{name: generator.random() for name in bag} for bag in compounds])


def assert_consistent(state: State, samples: Samples, reached: float) -> None:
    """What the state says of itself is what the samples say of its rows."""
    train, test, _ = np.split(state.order, np.cumsum(state.sizes))
    assert sorted(state.order) == list(range(len(samples)))
    assert reached == pytest.approx(score(GOAL, *measure(samples, train, test)), abs=1e-5)
    for kind, matrix in ((state.atoms, samples.atoms), (state.compounds, samples.compounds)):
        sides, exponents = kind.sides, kind.items.exponents
        assert not kind.change.any()
        for side, rows in enumerate((train, test)):
            expected = matrix[rows].sum(axis=0)
            np.testing.assert_allclose(sides.weights[side], expected, atol=1e-6)
            # Exactly nothing, where nothing is left: a remainder's tenth root would count.
            assert not sides.weights[side][expected == 0].any()
            np.testing.assert_allclose(sides.powers[side], sides.weights[side] ** exponents[side])


@given(st.integers(0, 50), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=40)
def test_exchanges_never_lose_and_a_cleared_compound_is_not_in_train(seed: int, n_train: int, n_test: int) -> None:
    samples = weighed(9, seed)
    generator = np.random.default_rng(seed)
    state = fill(samples, np.arange(9), np.array([n_train, n_test]))
    before = state.descend(GOAL, 0, generator)
    assert_consistent(state, samples, before)
    for _ in range(3):
        after = state.descend(GOAL, 50, generator)
        assert after <= before + 1e-9
        before = after
    assert_consistent(state, samples, after)
    # A compound that train has is cleared; a copy is another division.
    copy, holds = state.copy(), samples.compounds.toarray() > 0
    item = int(holds[state.order[:n_train]].sum(axis=0).argmax())
    held = holds[state.order[:n_train], item]
    assert state.clear(GOAL, item, generator) and held.any()
    assert not holds[state.order[:n_train], item].any() and not state.compounds.sides.weights[0, item]
    # Who does not hold it stays.
    np.testing.assert_array_equal(state.order[:n_train] != copy.order[:n_train], held)
    assert_consistent(state, samples, state.descend(GOAL, 0, generator))
    assert_consistent(copy, samples, after)


def test_what_too_many_hold_is_not_cleared() -> None:
    words = [{"x": 1.0}] * 5 + [{"y": 1.0}] * 2
    state = fill(from_bags(words, words), np.arange(7), np.array([5, 2]))
    assert not state.clear(GOAL, 0, np.random.default_rng(0))
    np.testing.assert_array_equal(state.order, np.arange(7))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("goal", [Goal(0.1, 0.5, False), Goal(0.2, 1.0, True)])
def test_the_best_of_all_divisions(goal: Goal, seed: int) -> None:
    samples = weighed(8, seed)
    begun = np.arange(4), np.arange(4, 6)
    best = min(score(goal, *measure(samples, *rows)) for rows in all_divisions(8, 4, 2))
    found = [exchange(samples, *begun, goal, 5000, np.random.default_rng(start)) for start in range(8)]
    reached = min(score(goal, *measure(samples, *rows)) for rows in found)
    assert reached == pytest.approx(best, abs=1e-5)
    assert best < score(goal, *measure(samples, *begun))


def test_no_side_is_emptied_of_compounds() -> None:
    """With all compounds in one sample a side, D_C would be undefined without it."""
    atoms = [{"a": 1.0}] * 6
    samples = from_bags(atoms, [{"x": 1.0}, {}, {}, {"x": 1.0, "y": 1.0}, {}, {}])
    train, test = exchange(samples, np.arange(3), np.arange(3, 6), GOAL, 20_000, np.random.default_rng(0))
    assert 0 < measure(samples, train, test)[1] < 1
    with pytest.raises(UserError):
        measure(samples, [1, 2], [0, 3])
