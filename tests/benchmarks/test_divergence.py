"""The benchmark of the greedy division, in small."""

import dataclasses

import pytest

from benchmarks import plain_divergence
from benchmarks.speed import divergence as bench
from compclip.divergence import divide
from compclip.divergence.samples import from_bags
from tests.divergence.plain_greedy import plain_greedy
from tests.divergence.random_samples import adjective_noun_bags


@pytest.mark.slow
def test_both_sides_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divide, "MOVES", 5000)
    measured = bench.measure(plain=(40, 80), sizes_own=(80, 300), restarts=1)
    assert measured["n"] == 80 and measured["ratio"] > 1
    assert list(measured["plain_seconds"]) == ["40", "80"] and list(measured["own_seconds"]) == ["40", "80", "300"]
    assert measured["restarts_compound"] > measured["greedy_compound"]


def test_another_choice_is_found() -> None:
    bags = adjective_noun_bags(30)
    division = bench.own(from_bags(*bags))
    given = *bags, *bench.part_sizes(30), bench.ATOM, bench.COMPOUND, bench.first_sample(30)
    train, test, path = plain_divergence.plain_greedy(*given)
    bench.check_choices(division, *plain_greedy(*given))
    bench.check_choices(division, train, test, path)
    swapped = division.test.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    with pytest.raises(AssertionError):
        bench.check_choices(dataclasses.replace(division, test=swapped), train, test, path)
