"""Divisions of wanted divergences: greedy as a plain loop, exchanges never worse than greedy; the
command line.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import compclip.divergence.greedy as greedy_module
from benchmarks.plain_divergence import plain_greedy
from compclip.core.errors import UserError
from compclip.divergence import divide as step
from compclip.divergence.divide import divide_samples
from compclip.divergence.exchange import CLEARING, exchange, state_of
from compclip.divergence.greedy import greedy
from compclip.divergence.kernels import Goal, State, clear, descend, target_score
from compclip.divergence.measure import measure
from compclip.divergence.samples import Samples, from_bags, read_samples
from tests.divergence.random_samples import adjective_noun_bags, all_divisions
from tests.divergence.test_samples import put, sample


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the step on 40 samples in a file, with the options given; returns the text that it
    writes.
    """
    monkeypatch.setattr(step, "MOVES", 3000)
    atoms, compounds = adjective_noun_bags(40, adjectives=4, nouns=4)
    bags = zip(map(Counter.elements, atoms), map(Counter.elements, compounds), strict=True)
    put(tmp_path / "S.jsonl", [{"atoms": [*a], "compounds": [*c]} for a, c in bags])

    def with_options(**changed: Any) -> str:
        options = {
            "samples": tmp_path / "S.jsonl",
            "train": 20,
            "test": 10,
            "atom_divergence": 0.1,
            "compound_divergence": 1.0,
            "seed": 0,
            "restarts": 1,
            "out": tmp_path / "split.json",
        } | changed
        step.main(step.Divide(**options))
        return Path(options["out"]).read_text()

    return with_options


@pytest.mark.parametrize(("seed", "moves"), [(0, 400), (1, 400), (2, 20_000)])
@pytest.mark.parametrize("compound", [1.0, 0.3])
def test_never_worse_than_the_plain_greedy(
    seed: int, moves: int, compound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greedy_module, "RENEW", 20)
    monkeypatch.setattr(step, "MOVES", moves / 60**0.5)
    atoms, compounds = adjective_noun_bags(60, seed=seed, adjectives=6, nouns=6)
    samples = from_bags(atoms, compounds)
    best = divide_samples(samples, 36, 12, 0.02, compound, seed, restarts=1)
    first = int(best.greedy.train[0])
    train, test, way = plain_greedy(atoms, compounds, 36, 12, 0.02, compound, first)
    assert best.greedy.train.tolist() == train and best.greedy.test.tolist() == test
    off = [
        abs(atom - 0.02) + abs(reached - compound)
        for atom, reached in (way[-1], (best.atom, best.compound))
    ]
    assert off[1] <= off[0] + 1e-12 and (moves == 400 or off[1] < off[0])
    assert (best.atom, best.compound) == measure(samples, best.train, best.test)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("atom", "compound"), [(0.1, 0.5), (0.2, "max"), (0.5, "max")])
def test_the_best_of_all_divisions(
    seed: int, atom: float, compound: float | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that does not bind draws D_A no nearer."""
    monkeypatch.setattr(step, "MOVES", 2000)
    samples, is_max = weighed(8, seed), compound == "max"
    goal = Goal(atom, 1.0 if is_max else float(compound), is_max)
    best = min(target_score(goal, *measure(samples, *rows)) for rows in all_divisions(8, 4, 2))
    reached = divide_samples(samples, 4, 2, atom, compound, seed, restarts=8)
    assert target_score(goal, reached.atom, reached.compound) == pytest.approx(best, abs=1e-5)
    assert not is_max or reached.atom <= atom


def test_what_is_written(run: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = run()
    values = json.loads(text)
    rows = {side: values[side] for side in ("train", "test", "unused")}
    assert [len(of_side) for of_side in rows.values()] == [20, 10, 10]
    assert sorted(sum(rows.values(), [])) == list(range(40))
    assert all(of_side == sorted(of_side) for of_side in rows.values())
    samples, _ = read_samples(tmp_path / "S.jsonl")
    atom, compound = measure(samples, rows["train"], rows["test"])
    assert (values["atom_divergence"], values["compound_divergence"]) == (
        round(atom, 6),
        round(compound, 6),
    )
    assert str(tmp_path) not in text and run() == text
    assert json.loads(run(seed=1))["train"] != values["train"]
    # Rounding does not count.
    even = put(tmp_path / "even.jsonl", [sample(["x"], "abc"), sample(["y"], "abc")] * 5)
    limits = {"compound_divergence": "max", "atom_divergence": 0}
    assert json.loads(run(samples=even, train=5, test=5, **limits))["compound_divergence"] == 1
    for limit, train, test in ((0.5, 20, 10), (0.0, 3, 2)):
        assert "no division within" not in caplog.text
        found = json.loads(
            run(compound_divergence="max", atom_divergence=limit, train=train, test=test)
        )
        above = f"no division within the atom divergence {limit} was found" in caplog.text
        assert above == (limit == 0) == (found["atom_divergence"] > limit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"train": 31},
            "S.jsonl: 31 train and 10 test samples: more than the 40 samples; lower them",
        ),
        ({"train": 0}, "train"),
        ({"test": -1}, "test"),
        ({"atom_divergence": 1.01}, "atom_divergence"),
        ({"compound_divergence": -0.5}, "compound_divergence"),
        ({"compound_divergence": "nan"}, "compound_divergence"),
        ({"restarts": 0}, "restarts"),
        ({"samples": "few.jsonl", "train": 1, "test": 1}, "few.jsonl: .*weighs nothing"),
    ],
)
def test_refused(run: Any, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    put(tmp_path / "few.jsonl", [sample(["x"], "a"), sample([], "a")])
    if "samples" in options:
        options = options | {"samples": tmp_path / options["samples"]}
    with pytest.raises((UserError, ValidationError), match=message):
        run(**options)
    assert not (tmp_path / "split.json").exists()


# As counts are, and as weights W(G, R) may be; a sample may have none.
BAGS = st.dictionaries(
    st.sampled_from("abcde"), st.sampled_from([0.3, 0.5, 1.0, 2.0, 3.0]), max_size=4
)
SHARES = st.floats(0, 1).map(lambda x: round(x, 3))


@given(st.data())
def test_the_same_choices_as_the_plain_greedy(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    atoms, compounds = (data.draw(st.lists(BAGS, min_size=n, max_size=n)) for _ in range(2))
    n_train = data.draw(st.integers(1, n - 1))
    n_test = data.draw(st.integers(1, n - n_train))
    atom, compound, first = data.draw(SHARES), data.draw(SHARES), data.draw(st.integers(0, n - 1))
    train, test, path = plain_greedy(atoms, compounds, n_train, n_test, atom, compound, first)
    found = greedy(from_bags(atoms, compounds), n_train, n_test, Goal(atom, compound, False), first)
    assert found.train.tolist() == train and found.test.tolist() == test
    np.testing.assert_allclose(np.transpose([found.atom, found.compound]), path, atol=1e-12)


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
    assert reached == pytest.approx(target_score(GOAL, *measure(samples, train, test)), abs=1e-5)
    for kind, matrix in ((state.atoms, samples.atoms), (state.compounds, samples.compounds)):
        assert not kind.change.any()
        for side, rows in enumerate((train, test)):
            expected = matrix[rows].sum(axis=0)
            np.testing.assert_allclose(kind.weights[side], expected, atol=1e-6)
            # Exactly 0 where no sample is left: a remainder's tenth root would count.
            assert not kind.weights[side][expected == 0].any()
            np.testing.assert_allclose(
                kind.powers[side], kind.weights[side] ** kind.exponents[side]
            )


@given(st.integers(0, 50), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=40)
def test_exchanges_never_lose_and_a_cleared_compound_is_not_in_train(
    seed: int, n_train: int, n_test: int
) -> None:
    samples = weighed(9, seed)
    generator = np.random.default_rng(seed)
    state = state_of(samples, np.arange(9), np.array([n_train, n_test]))
    before = descend(state, GOAL, np.empty((0, 2)))
    assert_consistent(state, samples, before)
    after = descend(state, GOAL, generator.random((150, 2)))
    assert after <= before + 1e-9
    assert_consistent(state, samples, after)
    # A compound that train has is cleared; samples without it stay.
    order, holds = state.order.copy(), samples.compounds.toarray() > 0
    item = int(holds[order[:n_train]].sum(axis=0).argmax())
    held = holds[order[:n_train], item]
    assert clear(state, GOAL, item, generator.random((n_train, CLEARING))) and held.any()
    assert not holds[state.order[:n_train], item].any() and not state.compounds.weights[0, item]
    np.testing.assert_array_equal(state.order[:n_train] != order[:n_train], held)
    assert_consistent(state, samples, descend(state, GOAL, np.empty((0, 2))))


def test_no_side_is_emptied_of_compounds() -> None:
    words = [{"x": 1.0}] * 5 + [{"y": 1.0}] * 2
    state = state_of(from_bags(words, words), np.arange(7), np.array([5, 2]))
    assert not clear(state, GOAL, 0, np.random.default_rng(0).random((5, CLEARING)))
    np.testing.assert_array_equal(state.order, np.arange(7))
    # With all compounds in one sample a side, D_C would be undefined without it.
    atoms = [{"a": 1.0}] * 6
    samples = from_bags(atoms, [{"x": 1.0}, {}, {}, {"x": 1.0, "y": 1.0}, {}, {}])
    train, test = exchange(
        samples, np.arange(3), np.arange(3, 6), GOAL, 20_000, np.random.default_rng(0)
    )
    assert 0 < measure(samples, train, test)[1] < 1
    with pytest.raises(UserError):
        measure(samples, [1, 2], [0, 3])
    # A start is a sample that weighs something.
    for seed in (0, 1, 2, 3, 4, 5):
        atoms, compounds = adjective_noun_bags(4, adjectives=3, nouns=3)
        samples = from_bags([Counter()] * 8 + atoms, [Counter()] * 8 + compounds)
        best = divide_samples(samples, 1, 2, 0.9, 1.0, seed, restarts=1)
        assert best.greedy.train[0] >= 8
        with pytest.raises(UserError, match="no sample has both atoms and compounds"):
            divide_samples(from_bags([Counter("a")] * 3, [Counter()] * 3), 1, 1, 0.5, 1.0, seed)
