"""Divide samples greedily into train and test with wanted divergences.

Source: Keysers et al. 2020, with the step of the pseudocode in their walk-through. Train starts
with one random sample. Then the side that is further behind its size takes the sample of the pool
that minimizes |D_C − d_C| + |D_A − d_A|; scores are compared to ten decimals, and the first sample
of the file wins ties. While a side has no weight, its divergence is undefined and counts as a
deviation of 1, the maximum.

With the weights w of a side, its exponent e (alpha for train, 1 − alpha for test) and the other
side's powers o, a sample u with weights v adds its gain to the overlap Σ w^e o: the sum over its
items of ((w + v)^e − w^e) o. Placing a sample changes only the gains of samples that share an item
with it. So all scores of a step cost one pass over the pool, regardless of the number of items.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compclip.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA
from compclip.divergence.kernels import TRAIN, Goal, as_kind, place, renew, take_samples
from compclip.divergence.samples import Samples

# Steps after which gains are recomputed, because sums of differences drift.
RENEW = 256


@dataclass(frozen=True)
class Division:
    train: np.ndarray  # rows of the samples, in the order taken
    test: np.ndarray
    atom: np.ndarray  # D_A after each sample was placed; NaN while a side has no weight
    compound: np.ndarray  # D_C, likewise


def greedy(
    samples: Samples,
    n_train: int,
    n_test: int,
    goal: Goal,
    first: int,
    advance: Callable[[int], object] = lambda n: None,
) -> Division:
    """Divide ``samples`` for the D_A and D_C of ``goal``, starting with sample ``first`` in
    train.
    """
    atoms, compounds = (
        as_kind(samples.atoms, ATOMS_ALPHA),
        as_kind(samples.compounds, COMPOUNDS_ALPHA),
    )
    side_of = np.full(len(samples), -1, np.int8)
    steps = n_train + n_test
    taken, reached = np.zeros(steps, np.int64), np.full((2, steps), np.nan)
    taken[0], side_of[first] = first, TRAIN
    for kind in (atoms, compounds):
        place(kind, first, TRAIN)
    sizes = np.array([n_train, n_test])
    for begin in range(1, steps, RENEW):
        for kind in (atoms, compounds):
            renew(kind)
        end = min(begin + RENEW, steps)
        take_samples(atoms, compounds, goal, sizes, side_of, taken, reached, begin, end)
        advance(end - begin)
    on_train = side_of[taken] == TRAIN
    return Division(taken[on_train], taken[~on_train], *reached)
