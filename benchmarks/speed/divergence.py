"""Divergence: the greedy division of samples, its scores updated, against one vectorized over all
samples at each step.

Random adjective-noun samples, D_C 1 and D_A 0.02 wanted, 60 % to train and 20 % to test; one core
each. Both sides take the same samples in the same order, or the benchmark fails. Compilation is
excluded: ours is called once before, on a few samples. ``plain_seconds`` and ``own_seconds`` show
the cost by doubling: samples and seconds. ``restarts_*`` is what ``divide`` makes of the samples
that the plain side divides, restarts and exchanges included.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.plain_divergence import plain_greedy
from benchmarks.speed import compared, seconds
from compclip.core.seeds import rng
from compclip.divergence.divide import divide_samples
from compclip.divergence.greedy import Division, greedy
from compclip.divergence.kernels import Goal
from compclip.divergence.samples import Samples, from_bags
from tests.divergence.random_samples import adjective_noun_bags

ATOM, COMPOUND, SEED = 0.02, 1.0, 0
PLAIN_SIZES = (200, 800, 3000)
OWN_SIZES = (3000, 6000, 12_000, 24_000)
GREEDY_REPEATS = 5


def part_sizes(n: int) -> tuple[int, int]:
    return n * 6 // 10, n * 2 // 10


def first_sample(n: int) -> int:
    """Where ``divide`` starts first."""
    return int(rng(SEED, "split", 0).integers(n))


def own(samples: Samples) -> Division:
    return greedy(
        samples, *part_sizes(len(samples)), Goal(ATOM, COMPOUND, False), first_sample(len(samples))
    )


def check_choices(
    division: Division, train: list[int], test: list[int], path: list[tuple[float, float]]
) -> None:
    """Raises AssertionError unless both took the same sample at every step."""
    assert division.train.tolist() == train and division.test.tolist() == test, (
        "the two sides chose differently"
    )
    np.testing.assert_allclose(np.transpose([division.atom, division.compound]), path, atol=1e-9)


def measure() -> dict[str, Any]:
    """Seconds of both sides at the last of PLAIN_SIZES, and of each at all its sizes."""
    own(from_bags(*adjective_noun_bags(50)))
    plain_seconds, own_seconds = {}, {}
    for n in PLAIN_SIZES:
        bags = adjective_noun_bags(n)
        plain_seconds[n], reference = seconds(
            partial(plain_greedy, *bags, *part_sizes(n), ATOM, COMPOUND, first_sample(n))
        )
        samples = from_bags(*bags)
        # Milliseconds: the median of several.
        times = [seconds(partial(own, samples)) for _ in range(GREEDY_REPEATS)]
        check_choices(times[0][1], *reference)
        own_seconds[n] = float(np.median([time for time, _ in times]))
    greedy_end = times[0][1]
    with_restarts, split = seconds(
        lambda: divide_samples(samples, *part_sizes(n), ATOM, COMPOUND, SEED)
    )
    for larger in OWN_SIZES:
        if larger not in own_seconds:
            made = from_bags(*adjective_noun_bags(larger))
            own_seconds[larger] = seconds(partial(own, made))[0]
    placed = sum(part_sizes(n))
    return compared(placed / own_seconds[n], placed / plain_seconds[n], "samples placed/s", n) | {
        "plain_seconds": {str(size): round(took, 3) for size, took in plain_seconds.items()},
        "own_seconds": {str(size): round(took, 4) for size, took in own_seconds.items()},
        "greedy_atom": round(float(greedy_end.atom[-1]), 4),
        "greedy_compound": round(float(greedy_end.compound[-1]), 4),
        "restarts_atom": round(split.atom, 4),
        "restarts_compound": round(split.compound, 4),
        "restarts_seconds": round(with_restarts, 1),
    }
