"""The greedy division takes the samples that the plain pseudocode takes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.divergence.plain_greedy import plain_greedy
from tests.divergence.random_samples import adjective_noun_bags
from workflow_scripts.divergence import greedy as module
from workflow_scripts.divergence.greedy import greedy
from workflow_scripts.divergence.kernels import TEST, TRAIN, Goal, as_kind, place, renew
from workflow_scripts.divergence.samples import from_bags

# As counts are, and as weights W(G, R) may be; a sample may have none.
bags = st.dictionaries(st.sampled_from("abcde"), st.sampled_from([0.3, 0.5, 1.0, 2.0, 3.0]), max_size=4)
share = st.floats(0, 1).map(lambda x: round(x, 3))


@given(st.data())
def test_the_same_choices_as_the_plain_greedy(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    atoms, compounds = (data.draw(st.lists(bags, min_size=n, max_size=n)) for _ in range(2))
    n_train = data.draw(st.integers(1, n - 1))
    n_test = data.draw(st.integers(1, n - n_train))
    atom, compound, first = data.draw(share), data.draw(share), data.draw(st.integers(0, n - 1))
    train, test, path = plain_greedy(atoms, compounds, n_train, n_test, atom, compound, first)
    found = greedy(from_bags(atoms, compounds), n_train, n_test, Goal(atom, compound, False), first)
    assert found.train.tolist() == train and found.test.tolist() == test
    np.testing.assert_allclose(np.transpose([found.atom, found.compound]), path, atol=1e-12)


def test_the_same_choices_over_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms, compounds = adjective_noun_bags(120)
    plain = plain_greedy(atoms, compounds, 72, 24, 0.02, 1.0, first=7)
    monkeypatch.setattr(module, "RENEW", 40)
    found = greedy(from_bags(atoms, compounds), 72, 24, Goal(0.02, 1.0, False), first=7)
    assert (found.train.tolist(), found.test.tolist()) == plain[:2]


def test_ties_go_to_the_first_sample() -> None:
    words = [Counter("ab")] * 6
    found = greedy(from_bags(words, words), 3, 2, Goal(0.0, 0.0, False), first=2)
    # train, test, train, test, train: whichever is further behind 3 to 2.
    assert found.train.tolist() == [2, 1, 4] and found.test.tolist() == [0, 3]


def test_a_side_without_weight_meets_no_target() -> None:
    """Sample 1 has no compounds: D_C would be undefined, and so is not the wanted 1."""
    atoms = [Counter("a"), Counter("a"), Counter("a")]
    compounds = [Counter("x"), Counter(), Counter("xy")]
    found = greedy(from_bags(atoms, compounds), 1, 1, Goal(0.0, 1.0, False), first=0)
    assert found.test.tolist() == [2] and np.isnan(found.compound[0]) and not np.isnan(found.compound[1])


def test_sums_kept_by_differences_are_those_made_anew() -> None:
    samples = from_bags(*adjective_noun_bags(60))
    for matrix, alpha in ((samples.atoms, 0.5), (samples.compounds, 0.1)):
        kind = as_kind(matrix, alpha)
        renew(kind)
        for sample in range(40):
            place(kind, sample, TEST if sample % 3 == 0 else TRAIN)
        kept = kind.sides.gains.copy(), kind.sides.overlap.copy()
        assert kept[1] > 0
        renew(kind)
        np.testing.assert_allclose(kept[0], kind.sides.gains, atol=1e-12)
        np.testing.assert_allclose(kept[1], kind.sides.overlap, atol=1e-12)
