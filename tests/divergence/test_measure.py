"""Divergences of samples: by hand, against dictionaries, and the command line."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.divergence.random_samples import from_bags
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import parse
from workflow_scripts.divergence import measure as step
from workflow_scripts.divergence.measure import measure, new_items, random_baseline
from workflow_scripts.divergence.samples import Samples, read_samples, stack

bags = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5).map(float), max_size=4)


def by_dictionary(bags: list[dict[str, float]], train: list[int], test: list[int], alpha: float) -> float:
    sides = []
    for rows in (train, test):
        counter: Counter[str] = Counter()
        for row in rows:
            counter.update(bags[row])
        sides.append({name: n / counter.total() for name, n in counter.items()})
    return 1 - sum(p**alpha * sides[1].get(name, 0) ** (1 - alpha) for name, p in sides[0].items())


@st.composite
def divisions(draw: st.DrawFn) -> tuple[list[dict[str, float]], list[dict[str, float]], list[int], list[int]]:
    n = draw(st.integers(2, 8))
    atoms, compounds = (draw(st.lists(bags, min_size=n, max_size=n)) for _ in range(2))
    order = draw(st.permutations(range(n)))
    cut = draw(st.integers(1, n - 1))
    train, test = order[:cut], order[cut : draw(st.integers(cut + 1, n))]
    assume(all(any(side[row] for row in rows) for side in (atoms, compounds) for rows in (train, test)))
    return atoms, compounds, train, test


@given(divisions())
def test_against_dictionaries(division: Any) -> None:
    atoms, compounds, train, test = division
    atom, compound = measure(from_bags(atoms, compounds), train, test)
    assert atom == pytest.approx(by_dictionary(atoms, train, test, 0.5), abs=1e-12)
    assert compound == pytest.approx(by_dictionary(compounds, train, test, 0.1), abs=1e-12)
    assert 0 <= atom <= 1 and 0 <= compound <= 1


@given(divisions())
def test_new_items_against_dictionaries(division: Any) -> None:
    _, compounds, train, test = division
    samples = from_bags(compounds, compounds)
    share, new = new_items(samples.compounds, train, test)
    seen = {name for row in train for name in compounds[row]}
    weights = Counter()
    for row in test:
        weights.update(compounds[row])
    fresh = {name: weight for name, weight in weights.items() if name not in seen}
    assert share == pytest.approx(sum(fresh.values()) / weights.total())
    assert [samples.compound_names[i] for i in new] == sorted(fresh, key=lambda name: (-fresh[name], name))


def test_a_sample_that_is_given_twice_counts_twice() -> None:
    samples = from_bags([{"a": 1}, {"b": 1}], [{"a": 1}, {"b": 1}])
    assert measure(samples, [0, 0, 0, 1], [1])[0] == pytest.approx(1 - 0.25**0.5)


@pytest.mark.parametrize("side", ["train", "test"])
def test_an_empty_side(side: str) -> None:
    samples = from_bags([{"a": 1}, {"b": 1}], [{"a": 1}, {}])
    rows = {"train": [0], "test": [0]}
    for empty in ([], [1]):
        with pytest.raises(UserError, match=f"^{side} is empty"):
            measure(samples, **{f"{name}_rows": value for name, value in {**rows, side: empty}.items()})


def world(n: int) -> Samples:
    generator = np.random.default_rng(0)
    words = [[f"w{i}" for i in generator.integers(12, size=4)] for _ in range(n)]
    return from_bags(
        [Counter(w) for w in words], [Counter(f"{a}_{b}" for a, b in zip(w, w[1:], strict=False)) for w in words]
    )


def test_the_baseline_measures_random_divisions() -> None:
    samples = world(30)
    values = random_baseline(samples, 12, 9, 5, rng(3, "measure"))
    generator = rng(3, "measure")
    for value in values:
        order = generator.permutation(30)
        assert value.tolist() == pytest.approx(measure(samples, order[:12], order[12:21]), abs=1e-12)
    assert len({tuple(value) for value in values.tolist()}) == 5
    assert random_baseline(samples, 12, 9, 5, rng(3, "measure")).tolist() == values.tolist()


def test_the_baseline_of_a_side_without_compounds() -> None:
    """One of the two samples has none: any division shares nothing."""
    samples = from_bags([{"a": 1}, {"a": 1}], [{"x": 1}, {}])
    assert random_baseline(samples, 1, 1, 4, rng(0, "measure")).tolist() == [[0, 1]] * 4


def write(path: Path, lines: list[tuple[str, list[Any]]]) -> Path:
    path.write_text("".join(json.dumps({"atoms": list(a), "compounds": c}) + "\n" for a, c in lines), encoding="utf-8")
    return path


def command(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    step.main(parse(step.Measure, [str(argument) for argument in arguments], "measure"))
    return capsys.readouterr().out


@pytest.fixture
def two(tmp_path: Path) -> list[str | Path]:
    train = write(tmp_path / "a.jsonl", [("ab", ["ab"]), ("cd", ["cd"]), ("ab", ["ab"])])
    test = write(tmp_path / "b.jsonl", [("ab", ["ab"]), ("ad", ["ad", "dé"]), ("bc", ["bc"])])
    return ["--train", train, "--test", test]


def test_command_line(two: list[str | Path], capsys: pytest.CaptureFixture[str]) -> None:
    values = json.loads(command(capsys, *two, "--json"))
    assert values["train"] == values["test"] == 3
    assert (values["atoms"], values["compounds"], values["new_compounds"]) == (4, 5, 3)
    # Train a 1/3, b 1/3, c 1/6, d 1/6; test the same. Of compounds only ab is shared: 2/3 and 1/4.
    assert values["atom_divergence"] == pytest.approx(0, abs=1e-15)
    assert values["compound_divergence"] == pytest.approx(1 - (2 / 3) ** 0.1 * (1 / 4) ** 0.9, abs=1e-15)
    assert values["new_compound_share"] == 0.75
    assert values["new_compound_examples"] == ["ad", "bc", "dé"]
    text = command(capsys, *two)
    for part in ("3 train, 3 test", "4 atoms, 5 compounds", "0.7242", "75.0 %", "ad, bc, dé"):
        assert part in text, part


def test_the_baseline_depends_on_the_seed_alone(two: list[str | Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, again, other = (json.loads(command(capsys, *two, "--json", "--seed", seed)) for seed in ("1", "1", "2"))
    assert one == again
    for kind in ("atom", "compound"):
        assert one[f"{kind}_divergence"] == other[f"{kind}_divergence"]
    assert one["random_compound_mean"] != other["random_compound_mean"]


def test_the_baseline_is_printed(two: list[str | Path], capsys: pytest.CaptureFixture[str]) -> None:
    values = json.loads(command(capsys, *two, "--json", "--shuffles", "7", "--seed", "3"))
    random = random_baseline(stack(read_samples(two[1], two[3])), 3, 3, 7, rng(3, "measure"))
    for column, kind in enumerate(("atom", "compound")):
        draws = random[:, column].tolist()
        assert values[f"random_{kind}_mean"] == pytest.approx(statistics.fmean(draws), abs=1e-15)
        assert values[f"random_{kind}_std"] == pytest.approx(statistics.pstdev(draws), abs=1e-15)
        shown = f"{kind} divergence", f"{statistics.fmean(draws):.4f} ± {statistics.pstdev(draws):.4f}, 7 shuffles"
        assert any(all(part in line for part in shown) for line in step.readable(values).splitlines())


def test_structures_are_weighed_over_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """G lies within H in train and alone in test: in train 1/2 each beside H's 1, in test 1."""
    g = {"name": "G", "atoms": [0, 1], "edges": [[0, 1]]}
    h = {"name": "H", "atoms": [0, 1, 2], "edges": [[0, 1], [1, 2]]}
    train, test = write(tmp_path / "a.jsonl", [("abc", [g, h])]), write(tmp_path / "b.jsonl", [("abc", [g])])
    values = json.loads(command(capsys, "--train", train, "--test", test, "--json"))
    assert values["compound_divergence"] == pytest.approx(1 - (1 / 3) ** 0.1, abs=1e-15)
    kept = json.loads(command(capsys, "--train", train, "--test", test, "--json", "--keep", "1"))
    assert kept["compounds"] == 1 and kept["compound_divergence"] == 0


def test_a_fault_is_one_line(tmp_path: Path) -> None:
    good = write(tmp_path / "a.jsonl", [("ab", ["ab"])])
    bad = write(tmp_path / "b.jsonl", [("ab", ["ab"]), ("ab", [{"name": "G", "atoms": [], "edges": []}])])
    for test, message in ((bad, f"{bad}: line 2: compound 'G': no atoms"), (tmp_path / "no", "No such file")):
        words = [sys.executable, "-m", step.__name__, "--train", good, "--test", test, "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 1 and done.stdout == ""
        assert message in done.stderr and done.stderr.count("\n") == 1
