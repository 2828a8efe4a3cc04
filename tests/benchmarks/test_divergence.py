"""The benchmark of the greedy division, in small."""

import dataclasses

import pytest

from benchmarks.plain_divergence import plain_greedy
from benchmarks.speed import divergence as bench
from compclip.divergence.samples import from_bags
from tests.divergence.random_samples import adjective_noun_bags


def test_another_choice_is_found() -> None:
    bags = adjective_noun_bags(30)
    division = bench.own(from_bags(*bags))
    given = *bags, *bench.part_sizes(30), bench.ATOM, bench.COMPOUND, bench.first_sample(30)
    train, test, path = plain_greedy(*given)
    bench.check_choices(division, train, test, path)
    swapped = division.test.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    with pytest.raises(AssertionError):
        bench.check_choices(dataclasses.replace(division, test=swapped), train, test, path)
