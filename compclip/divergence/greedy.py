"""Divide samples greedily into train and test with wanted divergences.

Source: Keysers et al. 2020, with the step of the pseudocode in their walk-through. Train starts
with one random sample. Then the subset that is further behind its size takes the sample of the
pool that minimizes |D_C − d_C| + |D_A − d_A|; scores are compared to ten decimals, and the first
sample of the file wins ties. While a subset has no weight, its divergence is undefined and counts
as a deviation of 1, the maximum.

With the weights w of a subset, its exponent e (alpha for train, 1 − alpha for test) and the other
subset's powers o, a sample u with weights v adds its gain to the overlap Σ w^e o: the sum over its
items of ((w + v)^e − w^e) o. Placing a sample changes only the gains of samples that share an item
with it. So all scores of a step cost one pass over the pool, regardless of the number of items.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compclip.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA
from compclip.divergence.kernels import TRAIN, Goal, Steps, as_kind, place, renew, take_samples
from compclip.divergence.samples import Samples

# Steps after which gains are recomputed, because sums of differences drift.
RENEW = 256


@dataclass(frozen=True)
class Division:
    train: np.ndarray  # rows of the samples, in the order placed
    test: np.ndarray
    atom: np.ndarray  # D_A after each sample was placed; NaN while a subset has no weight
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
    atoms = as_kind(samples.atoms, ATOMS_ALPHA)
    compounds = as_kind(samples.compounds, COMPOUNDS_ALPHA)
    n_steps = n_train + n_test
    steps = Steps(
        subset_of=np.full(len(samples), -1, np.int8),
        samples=np.zeros(n_steps, np.int64),
        divergences=np.full((2, n_steps), np.nan),
    )
    # Its divergences stay NaN, because test has no weight yet.
    steps.samples[0] = first
    steps.subset_of[first] = TRAIN
    place(atoms, first, TRAIN)
    place(compounds, first, TRAIN)
    sizes = np.array([n_train, n_test])
    for begin in range(1, n_steps, RENEW):
        renew(atoms)
        renew(compounds)
        end = min(begin + RENEW, n_steps)
        take_samples(atoms, compounds, goal, sizes, steps, begin, end)
        advance(end - begin)
    in_train = steps.subset_of[steps.samples] == TRAIN
    atom, compound = steps.divergences
    return Division(steps.samples[in_train], steps.samples[~in_train], atom, compound)
