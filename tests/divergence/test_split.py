"""Divisions of wanted divergences: never worse than the greedy ones, and the command line."""

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.divergence.plain_greedy import plain_greedy
from tests.divergence.random_samples import adjective_noun_bags, all_divisions, from_bags
from workflow_scripts.core.errors import UserError
from workflow_scripts.divergence import split as step
from workflow_scripts.divergence.greedy import Division
from workflow_scripts.divergence.measure import measure
from workflow_scripts.divergence.samples import read_samples
from workflow_scripts.divergence.split import divide, path

Run = Any


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the step on 40 samples in a file, with the options given; returns split.json's text."""
    monkeypatch.setattr(step, "MOVES", 3000)
    atoms, compounds = adjective_noun_bags(40, adjectives=4, nouns=4)
    bags = zip(map(Counter.elements, atoms), map(Counter.elements, compounds), strict=True)
    lines = [json.dumps({"id": f"s{i}", "atoms": [*a], "compounds": [*c]}) for i, (a, c) in enumerate(bags)]
    (tmp_path / "S.jsonl").write_text("\n".join(lines) + "\n")

    def with_options(**changed: Any) -> str:
        options = {
            "samples": tmp_path / "S.jsonl", "train": 20, "test": 10, "atom_divergence": 0.1,
            "compound_divergence": 1.0, "seed": 0, "restarts": 1, "out": tmp_path / "split.json",
        } | changed  # fmt: skip
        step.main(step.Split(**options))
        return Path(options["out"]).read_text()

    return with_options


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("compound", [1.0, 0.3])
def test_never_worse_than_the_plain_greedy(seed: int, compound: float) -> None:
    """The first start is where the plain greedy starts."""
    atoms, compounds = adjective_noun_bags(60, seed=seed, adjectives=6, nouns=6)
    samples = from_bags(atoms, compounds)
    split = divide(samples, 36, 12, 0.02, compound, seed, restarts=2, moves=100_000)
    first = int(split.starts[0].greedy.train[0])
    train, test, way = plain_greedy(atoms, compounds, 36, 12, 0.02, compound, first)
    assert split.starts[0].greedy.train.tolist() == train and split.starts[0].greedy.test.tolist() == test
    atom, reached = way[-1]
    assert split.kept.atom <= atom + 1e-12
    assert abs(split.kept.compound - compound) < abs(reached - compound) or reached == pytest.approx(compound, abs=1e-3)
    assert (split.kept.atom, split.kept.compound) == measure(samples, split.kept.train, split.kept.test)


def test_max_is_over_what_the_greedy_reaches_and_within_the_limit() -> None:
    samples = from_bags(*adjective_noun_bags(200))
    split = divide(samples, 120, 40, 0.02, "max", seed=3, restarts=2, moves=400_000)
    assert split.limit == 0.02 and split.kept.atom <= 0.02
    assert split.kept.compound == max(start.compound for start in split.starts if start.atom <= 0.02)
    assert split.kept.compound > split.starts[0].greedy.compound[-1]


@pytest.mark.parametrize("seed", range(3))
def test_max_is_the_best_of_all_divisions(seed: int) -> None:
    """A limit that does not bind draws D_A no nearer."""
    samples = from_bags(*adjective_noun_bags(8, seed=seed, adjectives=3, nouns=3))
    rows = all_divisions(8, 4, 2)
    best = max(compound for atom, compound in (measure(samples, *some) for some in rows) if atom <= 0.5)
    split = divide(samples, 4, 2, 0.5, "max", seed, restarts=8, moves=5000)
    assert split.kept.compound == pytest.approx(best, abs=1e-9) and split.kept.atom <= 0.5


@pytest.mark.parametrize("seed", range(5))
def test_exchanges_that_lose_are_not_kept(seed: int) -> None:
    samples = from_bags(*adjective_noun_bags(60))
    split = divide(samples, 36, 12, 0.02, 1.0, seed, restarts=1, moves=400)
    grown = split.starts[0].greedy
    assert split.kept.atom <= grown.atom[-1] + 1e-12 and split.kept.compound >= grown.compound[-1] - 1e-12


def test_a_limit_out_of_reach_is_said(run: Run, caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    found = json.loads(run(compound_divergence="max", atom_divergence=0.0, train=3, test=2))
    assert found["atom_divergence"] > 0 and found["within_limit"] is False
    assert "no division with an atom divergence of at most 0.0 was found" in caplog.text
    assert json.loads(run(compound_divergence="max", atom_divergence=0.5))["within_limit"] is True


def test_same_seed_same_bytes(run: Run) -> None:
    text = run()
    assert run() == text
    assert json.loads(run(seed=1))["train"] != json.loads(text)["train"]


def test_what_is_written(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(restarts=2))
    rows = {side: found[side] for side in ("train", "test", "unused")}
    assert [len(some) for some in rows.values()] == [20, 10, 10]
    assert sorted(sum(rows.values(), [])) == list(range(40))
    for side, some in rows.items():
        assert found[f"{side}_ids"] == [f"s{row}" for row in some] and some == sorted(some)
    (samples,) = read_samples(tmp_path / "S.jsonl")
    atom, compound = measure(samples, rows["train"], rows["test"])
    assert (found["atom_divergence"], found["compound_divergence"]) == (round(atom, 6), round(compound, 6))
    assert len(found["starts"]) == 2 and found["path"]["samples"][-1] == 30
    best = found["starts"][found["best"]]
    assert (best["atom"], best["compound"]) == (found["atom_divergence"], found["compound_divergence"])
    assert found["path"]["compound"][-1] == best["greedy_compound"]
    # A random division keeps pairs where they are found; this one does not.
    assert found["random_compound_mean"] + 3 * found["random_compound_std"] < found["compound_divergence"]
    printed = capsys.readouterr().out
    assert "20 train, 10 test, 10 unused" in printed and f"{found['random_compound_mean']:.4f}" in printed
    assert str(tmp_path) not in (tmp_path / "split.json").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": 31}, "31 train and 10 test samples are more than the 40 samples"),
        ({"train": 0}, "train"),
        ({"test": -1}, "test"),
        ({"atom_divergence": 1.01}, "atom_divergence"),
        ({"compound_divergence": -0.5}, "compound_divergence"),
        ({"compound_divergence": "nan"}, "compound_divergence"),
        ({"restarts": 0}, "restarts"),
    ],
)
def test_refused(run: Run, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((UserError, ValidationError), match=message):
        run(**options)
    assert not (tmp_path / "split.json").exists()


def test_a_side_without_compounds_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "few.jsonl").write_text('{"atoms": ["a"], "compounds": ["x"]}\n{"atoms": ["a"], "compounds": []}\n')
    with pytest.raises(UserError, match="few.jsonl: .*weighs nothing"):
        run(samples=tmp_path / "few.jsonl", train=1, test=1)


def test_samples_without_atoms_or_compounds_are_placed() -> None:
    words = [Counter("ab"), Counter("ac"), Counter("b"), Counter("bc")]
    samples = from_bags([*words, Counter()], [*words, Counter()])
    split = divide(samples, 3, 2, 0.0, 0.0, seed=0, restarts=1, moves=1000)
    assert sorted([*split.kept.train, *split.kept.test]) == list(range(5))


def test_a_path_of_few_points() -> None:
    values = np.array([np.nan, *np.linspace(0, 1, 5000)])
    shown = path(Division(np.arange(3000), np.arange(3000, 5001), values, values), points=100)
    assert len(shown["samples"]) == 100 and (shown["samples"][0], shown["samples"][-1]) == (2, 5001)
    assert (shown["atom"][0], shown["compound"][-1]) == (0.0, 1.0)


def test_the_samples_are_not_overwritten(run: Run, tmp_path: Path) -> None:
    before = (tmp_path / "S.jsonl").read_text()
    with pytest.raises(UserError, match=r"S\.jsonl: same file as --samples"):
        run(out=tmp_path / "S.jsonl")
    assert (tmp_path / "S.jsonl").read_text() == before


@pytest.mark.parametrize("seed", range(6))
def test_a_start_is_a_sample_that_weighs_something(seed: int) -> None:
    atoms, compounds = adjective_noun_bags(4, adjectives=3, nouns=3)
    samples = from_bags([Counter()] * 8 + atoms, [Counter()] * 8 + compounds)
    found = divide(samples, 1, 2, 0.9, 1.0, seed, restarts=3, moves=200)
    assert all(start.greedy.train[0] >= 8 for start in found.starts)
    with pytest.raises(UserError, match="no sample has both atoms and compounds"):
        divide(from_bags([Counter("a")] * 3, [Counter()] * 3), 1, 1, 0.5, 1.0, seed)


def test_a_limit_of_0_is_kept_but_for_rounding(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = [json.dumps({"atoms": ["a", "b", "c"], "compounds": ["x" if i % 2 else "y"]}) for i in range(10)]
    (tmp_path / "S.jsonl").write_text("\n".join(lines) + "\n")
    values = json.loads(run(train=5, test=5, atom_divergence=0, compound_divergence="max"))
    assert values["within_limit"] and values["compound_divergence"] == 1
    assert not [record for record in caplog.records if "no division" in record.getMessage()]


def test_the_expected_time_is_said_before(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first sample is placed; quadratic in the samples, so hours for a million."""
    monkeypatch.setattr(step, "greedy", lambda *_: pytest.fail("placed"))
    samples = from_bags(*adjective_noun_bags(60, adjectives=6, nouns=6))
    caplog.set_level("INFO")
    with pytest.raises(pytest.fail.Exception):
        divide(samples, 36, 12, 0.02, 1.0, 0)
    assert caplog.messages[0].startswith("3 times: 48 of 60 samples placed, then ")
    step.announce(samples, 10**12, 3, 10)
    assert caplog.messages[-1].endswith("about 834.0 h in all")
    step.announce(samples, 10**11, 3, 10)
    assert caplog.messages[-1].endswith("about 83.4 h in all")


@pytest.mark.slow
def test_the_expected_time_is_right(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a factor of 2 on an idle core; of 3 here, because other programs may use the caches."""
    caplog.set_level("INFO")
    divide(from_bags(*adjective_noun_bags(50)), 30, 10, 0.02, 1.0, 0, 1, 10)
    samples = from_bags(*adjective_noun_bags(20_000))
    caplog.clear()
    begun = time.process_time()
    divide(samples, 12_000, 4_000, 0.02, 1.0, 0, 1, 2_000_000)
    (expected,) = re.findall(r"about (\d+) s in all", caplog.text)
    assert 1 / 3 < (time.process_time() - begun) / float(expected) < 3
