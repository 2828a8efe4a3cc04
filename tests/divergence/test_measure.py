"""The Chernoff coefficient and divergences by hand, as sums and against dictionaries; the command
line.
"""

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.core.seeds import rng
from compclip.core.settings.cli import parse
from compclip.divergence import measure as step
from compclip.divergence.chernoff import ATOMS_ALPHA, chernoff, divergence
from compclip.divergence.measure import measure, random_baseline
from compclip.divergence.samples import from_bags, read_samples
from tests.divergence.random_samples import adjective_noun_bags
from tests.divergence.test_samples import put, sample

bags = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5).map(float), max_size=4)


@given(st.data())
def test_against_dictionaries(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 8))
    atoms, compounds = (data.draw(st.lists(bags, min_size=n, max_size=n)) for _ in range(2))
    order, cut = data.draw(st.permutations(range(n))), data.draw(st.integers(1, n - 1))
    train, test = order[:cut], order[cut : data.draw(st.integers(cut + 1, n))]
    assume(
        all(any(side[row] for row in rows) for side in (atoms, compounds) for rows in (train, test))
    )
    atom, compound = measure(from_bags(atoms, compounds), train, test)
    for value, side, alpha in ((atom, atoms, 0.5), (compound, compounds, 0.1)):
        p, q = (sum((Counter(side[row]) for row in rows), Counter[str]()) for rows in (train, test))
        overlap = sum(
            (p[name] / p.total()) ** alpha * (q[name] / q.total()) ** (1 - alpha) for name in p
        )
        assert value == pytest.approx(1 - overlap, abs=1e-12)
    assert 0 <= atom <= 1 and 0 <= compound <= 1


def command(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    step.main(parse(step.MeasureSamples, [str(argument) for argument in arguments], "measure"))
    return json.loads(capsys.readouterr().out)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = put(tmp_path / "a.jsonl", [sample([pair], pair) for pair in ("ab", "cd", "ab")])
    test = put(
        tmp_path / "b.jsonl",
        [sample(["ab"], "ab"), sample(["ad", "dé"], "ad"), sample(["bc"], "bc")],
    )
    two = ["--train", train, "--test", test]
    values = command(capsys, *two, "--shuffles", "7", "--seed", "3")
    assert (values["train"], values["test"], values["atoms"], values["compounds"]) == (3, 3, 4, 5)
    # Train a 1/3, b 1/3, c 1/6, d 1/6; test the same. Of compounds only ab is shared: 2/3 and 1/4.
    assert values["atom_divergence"] == pytest.approx(0, abs=1e-15)
    assert values["compound_divergence"] == pytest.approx(
        1 - (2 / 3) ** 0.1 * (1 / 4) ** 0.9, abs=1e-15
    )
    random = random_baseline(read_samples(train, test)[0], 3, 3, 7, rng(3, "measure"))
    for column, kind in enumerate(("atom", "compound")):
        draws = random[:, column].tolist()
        assert values[f"random_{kind}_mean"] == pytest.approx(statistics.fmean(draws), abs=1e-15)
        assert values[f"random_{kind}_std"] == pytest.approx(statistics.pstdev(draws), abs=1e-15)
    other = command(capsys, *two, "--shuffles", "7", "--seed", "2")
    assert [
        name for name in values if values[name] != other[name] and not name.startswith("random")
    ] == ["seed"]
    assert values["random_compound_mean"] != other["random_compound_mean"]


def test_the_walk_through_empty_sides_and_random_divisions() -> None:
    train, test = (0.001, 0.001, 0.998, 0), (0.4, 0.4, 0, 0.2)
    assert chernoff(train, test, 0.1) == pytest.approx(2 * 0.001**0.1 * 0.4**0.9)
    assert round(chernoff(train, test, 0.5), 2) == 0.04
    assert divergence(train, test, 0.1) == pytest.approx(1 - 0.4395, abs=1e-4)
    # Rounding alone would give -2e-16.
    assert divergence([1, 1], [1, 1], 0.5) == 0
    for train, test, empty in (
        ([0, 0], [1, 0], "train"),
        ([1, 0], [0, 0], "test"),
        ([], [], "train"),
    ):
        with pytest.raises(UserError, match=f"^{empty} "):
            divergence(train, test, ATOMS_ALPHA)
    samples = from_bags(*adjective_noun_bags(30))
    values = random_baseline(samples, 12, 9, 5, rng(3, "measure"))
    generator = rng(3, "measure")
    for value in values:
        order = generator.permutation(30)
        assert value.tolist() == pytest.approx(
            measure(samples, order[:12], order[12:21]), abs=1e-12
        )
    assert len({tuple(value) for value in values.tolist()}) == 5
    # One of two samples has no compounds: any division shares nothing.
    samples = from_bags([{"a": 1}, {"a": 1}], [{"x": 1}, {}])
    assert random_baseline(samples, 1, 1, 4, rng(0, "measure")).tolist() == [[0, 1]] * 4
