"""The greedy division of samples into train and test by wanted divergences.

Source: Keysers et al. 2020, the step as in the pseudocode of the walk-through. One random sample starts train. Then,
whichever of train and test is further behind its size takes the sample of the pool that brings
|D_C − d_C| + |D_A − d_A| lowest; scores are compared to ten decimals, ties go to the first sample of the file. Of a
side without weight there is no divergence: as a deviation it counts 1, the most there is, so that no target is met by
leaving a side empty.

With the weights w of a side, e its exponent (alpha for train, 1 − alpha for test) and o the other side's, what a
sample u of weights v would add to the overlap Σ w^e o is its gain, Σ over u's items of ((w + v)^e − w^e) o. When a
sample is placed, only the gains of those that share an item with it change: all scores of a step cost one pass over
the pool, however many items it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workflow_scripts.core.progress import Progress
from workflow_scripts.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA
from workflow_scripts.divergence.kernels import TRAIN, as_items, empty_sides, place, renew, take
from workflow_scripts.divergence.samples import Samples

# Gains are computed anew after as many steps: sums that only grow by differences drift.
RENEW = 256


@dataclass(frozen=True)
class Division:
    """Rows of the samples in ``train`` and in ``test``, in the order taken.

    ``atom`` and ``compound``: D_A and D_C after each sample placed, as long as both sides together; NaN where a side
    weighs nothing yet.
    """

    train: np.ndarray
    test: np.ndarray
    atom: np.ndarray
    compound: np.ndarray


def greedy(
    samples: Samples,
    n_train: int,
    n_test: int,
    atom: float,
    compound: float,
    first: int,
    progress: Progress | None = None,
) -> Division:
    """Divide ``samples`` greedily, beginning with sample ``first`` in train.

    ``n_train`` and ``n_test``: samples of each side, at least 1, together no more than there are. ``atom`` and
    ``compound``: the wanted D_A and D_C.
    """
    kinds = as_items(samples.atoms, ATOMS_ALPHA), as_items(samples.compounds, COMPOUNDS_ALPHA)
    sides = empty_sides(kinds[0]), empty_sides(kinds[1])
    side_of = np.full(len(samples), -1, np.int8)
    steps = n_train + n_test
    taken, reached = np.zeros(steps, np.int64), np.full((2, steps), np.nan)
    taken[0], side_of[first] = first, TRAIN
    for one in (0, 1):
        place(kinds[one], sides[one], first, TRAIN)
    targets, sizes = np.array([atom, compound]), np.array([n_train, n_test])
    for begin in range(1, steps, RENEW):
        for one in (0, 1):
            renew(kinds[one], sides[one])
        end = min(begin + RENEW, steps)
        take(kinds[0], kinds[1], sides[0], sides[1], targets, sizes, side_of, taken, reached, begin, end)
        if progress is not None:
            progress.add(end - begin)
    on_train = side_of[taken] == TRAIN
    return Division(taken[on_train], taken[~on_train], *reached)
