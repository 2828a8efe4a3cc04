"""Exchanges of samples after the greedy division: the removal that Keysers et al. 2020 mention and leave open.

In an exchange a placed sample changes places with one of the other side or of the pool; the sizes of both sides stay.
First comes simulated annealing: exchanges are drawn at random, one that makes the score worse by x is made with the
chance exp(−x / temperature), and the temperature falls. But a compound that is to be in test alone gains little until
the last of its samples has left train. So hops follow: a compound is cleared from train at once, a short annealing
comes after it, and what is better is kept. On some samples either alone ends lower, and so does mere descent.

What an exchange changes of the overlap Σ train^alpha test^(1 − alpha) lies in the items of its two samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from workflow_scripts.core.progress import Progress
from workflow_scripts.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA
from workflow_scripts.divergence.kernels import TRAIN, Goal, Kind, Sides, anneal, as_items, clear, empty_sides, score
from workflow_scripts.divergence.samples import Samples

# Steps in which the temperature falls; at each the overlap is summed up anew.
STEPS, HOP_STEPS = 200, 5
# Hops, and what share of the annealing's exchanges each has.
HOPS, HOP_SHARE = 400, 0.02
# Temperatures, in mean changes of the score by an exchange in a random division: the annealing's first, a hop's
# first, and the last of both.
HOT, WARM, COLD = 10.0, 0.3, 0.04
# What D_A over its limit costs. The way to a better division leads over the limit; the end is within.
SOFT, HARD, SOFT_SHARE = 3.0, 1e12, 0.9
# From each cleared sample the best of so many exchanges is made.
TRIES = 4
# Weights are rounded to multiples of this, so that their sums are exact: what has left a side weighs nothing
# there, and not 1e-17, whose tenth root is 0.02.
GRID = 2.0**-24
# A score that counts as none.
REACHED = 5e-5


def tried(moves: int) -> int:
    """The exchanges that ``exchange`` tries in all."""
    return moves + HOPS * int(moves * HOP_SHARE)


def exchange(
    samples: Samples,
    train: np.ndarray,
    test: np.ndarray,
    goal: Goal,
    moves: int,
    generator: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of train and test after ``moves`` exchanges tried in the annealing and as many in the hops as belong to it.

    ``train`` and ``test``: the rows to begin with. The result may score worse than these: compare.
    """
    # Sums in another order may differ by as little.
    goal = goal._replace(limit=goal.limit - 1e-12)
    pool = np.setdiff1d(np.arange(len(samples)), np.concatenate([train, test]))
    order, sizes = np.concatenate([train, test, pool]), np.array([len(train), len(test)])
    mixed = fill(samples, generator.permutation(order), sizes)
    # Not 0 where all samples are alike.
    unit = max(1e-12, mixed.step(goal, SOFT, np.inf, generator.random((-(-moves // STEPS), 3))))
    best = fill(samples, order, sizes)
    best.cool(goal, moves, STEPS, HOT * unit, COLD * unit, generator, progress)
    held = best.compounds.items.items
    for _ in range(HOPS):
        if best.score(goal) < REACHED:
            break
        hop = best.copy()
        if hop.clear(goal, held[generator.integers(len(held))], generator):
            hop.cool(goal, int(moves * HOP_SHARE), HOP_STEPS, WARM * unit, COLD * unit, generator)
            if hop.score(goal) < best.score(goal):
                best = hop
        if progress is not None:
            progress.add(int(moves * HOP_SHARE))
    return np.split(best.order, np.cumsum(sizes))[:2]


class State(NamedTuple):
    """A division under way: ``order`` holds the rows of train, then of test, then of the pool."""

    order: np.ndarray
    sizes: np.ndarray
    atoms: Kind
    compounds: Kind
    reached: np.ndarray  # D_A and D_C after the last step

    def copy(self) -> State:
        kinds = [kind._replace(sides=Sides(*(a.copy() for a in kind.sides))) for kind in (self.atoms, self.compounds)]
        return State(self.order.copy(), self.sizes, *kinds, self.reached.copy())

    def score(self, goal: Goal) -> float:
        return score(goal, *self.reached, HARD)

    def step(self, goal: Goal, penalty: float, temperature: float, draws: np.ndarray) -> float:
        """Try an exchange for each row of ``draws``; the mean size of the changes of the score."""
        return anneal(
            self.atoms, self.compounds, goal, penalty, temperature, draws, self.order, self.sizes, self.reached
        )

    def cool(
        self,
        goal: Goal,
        moves: int,
        steps: int,
        hot: float,
        cold: float,
        generator: np.random.Generator,
        progress: Progress | None = None,
    ) -> None:
        size = -(-moves // steps)
        for step, temperature in enumerate(np.geomspace(hot, cold, steps)):
            penalty = SOFT if step + 1 < SOFT_SHARE * steps else HARD
            self.step(goal, penalty, temperature, generator.random((size, 3)))
            if progress is not None:
                progress.add(size)
            if self.score(goal) < REACHED:
                break

    def clear(self, goal: Goal, compound: int, generator: np.random.Generator) -> bool:
        """Take all samples with ``compound`` out of train, if the others can take so many."""
        luck = generator.random((self.sizes[TRAIN], TRIES))
        return clear(self.atoms, self.compounds, goal, SOFT, compound, luck, self.order, self.sizes)


def fill(samples: Samples, order: np.ndarray, sizes: np.ndarray) -> State:
    kinds = []
    for matrix, alpha in ((samples.atoms, ATOMS_ALPHA), (samples.compounds, COMPOUNDS_ALPHA)):
        matrix = sparse.csr_array((np.rint(matrix.data / GRID) * GRID, matrix.indices, matrix.indptr), matrix.shape)
        items = as_items(matrix, alpha)
        sides = empty_sides(items)
        for side, rows in enumerate(np.split(order, np.cumsum(sizes))[:2]):
            sides.weights[side] = matrix[rows].sum(axis=0)
            sides.powers[side] = sides.weights[side] ** items.exponents[side]
        sides.totals[:] = sides.weights.sum(axis=1)
        longest = int(np.diff(matrix.indptr).max())
        kinds.append(Kind(items, sides, np.zeros(matrix.shape[1]), np.zeros(2 * longest, np.int64)))
    return State(order, sizes, *kinds, np.full(2, np.nan))
