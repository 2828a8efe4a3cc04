"""Exchanges of samples after the greedy division; Keysers et al. 2020 mention them without details.

In an exchange, a placed sample changes places with one of the other side or of the pool, so both sizes stay the same.
Simulated annealing comes first: exchanges are drawn at random, one that worsens the score by x is made with probability
exp(−x / temperature), and the temperature falls. A compound that should be in test only gains little until the last of
its samples has left train. Therefore hops follow: a compound is cleared from train at once, a short annealing follows,
and an improvement is kept. On some samples either method alone is worse, and so is plain descent.

An exchange changes the overlap Σ train^alpha test^(1 − alpha) only in the items of its two samples.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from workflow_scripts.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA
from workflow_scripts.divergence.kernels import TRAIN, Goal, Kind, Sides, anneal, as_items, clear, empty_sides, score
from workflow_scripts.divergence.samples import Samples

# Steps in which the temperature falls; at each, the overlap is summed anew.
STEPS, HOP_STEPS = 200, 5
# Number of hops, and the exchanges of each as a fraction of the annealing's.
HOPS, HOP_FRACTION = 400, 0.02
# Temperatures, in mean changes of the score by an exchange in a random division: the first of the annealing, the first
# of a hop, and the last of both.
HOT, WARM, COLD = 10.0, 0.3, 0.04
# Penalty for D_A above its limit, and the fraction of the steps with the soft one: better divisions are reached through
# some above the limit, but the last must be within.
SOFT, HARD, SOFT_FRACTION = 3.0, 1e12, 0.9
# Exchanges tried for each sample that is cleared; the best is made.
TRIES = 4
# Weights are rounded to multiples of this, so that their sums are exact: what has left a side weighs 0 there, and not
# 1e-17, whose tenth root is 0.02.
GRID = 2.0**-24
# A score below this counts as 0.
REACHED = 5e-5


def tried(moves: int) -> int:
    return moves + HOPS * int(moves * HOP_FRACTION)


def exchange(
    samples: Samples,
    train: np.ndarray,
    test: np.ndarray,
    goal: Goal,
    moves: int,
    generator: np.random.Generator,
    advance: Callable[[int], object] = lambda moves: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of train and test after exchanges, ``moves`` in the annealing; they may score worse, so compare."""
    # Sums in another order may differ by this.
    goal = goal._replace(limit=goal.limit - 1e-12)
    pool = np.setdiff1d(np.arange(len(samples)), np.concatenate([train, test]))
    order, sizes = np.concatenate([train, test, pool]), np.array([len(train), len(test)])
    mixed = fill(samples, generator.permutation(order), sizes)
    # Equal samples would give 0.
    unit = max(1e-12, mixed.step(goal, SOFT, np.inf, generator.random((-(-moves // STEPS), 3))))
    best = fill(samples, order, sizes)
    best.cool(goal, moves, STEPS, HOT * unit, COLD * unit, generator, advance)
    compounds = best.compounds.items.items
    for _ in range(HOPS):
        if best.score(goal) < REACHED:
            break
        hop = best.copy()
        if hop.clear(goal, compounds[generator.integers(len(compounds))], generator):
            hop.cool(goal, int(moves * HOP_FRACTION), HOP_STEPS, WARM * unit, COLD * unit, generator)
            if hop.score(goal) < best.score(goal):
                best = hop
        advance(int(moves * HOP_FRACTION))
    train, test, _ = np.split(best.order, np.cumsum(sizes))
    return train, test


class State(NamedTuple):
    """A division in progress: ``order`` has the rows of train, then of test, then of the pool."""

    order: np.ndarray
    sizes: np.ndarray
    atoms: Kind
    compounds: Kind
    reached: np.ndarray  # D_A and D_C after the last step

    def copy(self) -> "State":
        atoms, compounds = (
            kind._replace(sides=Sides(*(a.copy() for a in kind.sides))) for kind in (self.atoms, self.compounds)
        )
        return State(self.order.copy(), self.sizes, atoms, compounds, self.reached.copy())

    def score(self, goal: Goal) -> float:
        atom, compound = self.reached
        return score(goal, atom, compound, HARD)

    def step(self, goal: Goal, penalty: float, temperature: float, draws: np.ndarray) -> float:
        """Try an exchange for each row of ``draws`` (n, 3); return the mean absolute change of the score."""
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
        advance: Callable[[int], object] = lambda moves: None,
    ) -> None:
        """Try ``moves`` exchanges while the temperature falls from ``hot`` to ``cold``."""
        size = -(-moves // steps)
        for step, temperature in enumerate(np.geomspace(hot, cold, steps)):
            penalty = SOFT if step + 1 < SOFT_FRACTION * steps else HARD
            self.step(goal, penalty, temperature, generator.random((size, 3)))
            advance(size)
            if self.score(goal) < REACHED:
                break

    def clear(self, goal: Goal, compound: int, generator: np.random.Generator) -> bool:
        """Move all samples with ``compound`` out of train; return whether there was room for them elsewhere."""
        luck = generator.random((self.sizes[TRAIN], TRIES))
        return clear(self.atoms, self.compounds, goal, SOFT, compound, luck, self.order, self.sizes)


def fill(samples: Samples, order: np.ndarray, sizes: np.ndarray) -> State:
    """Return the state of a division; ``sizes`` are those of train and test."""
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
    return State(order, sizes, kinds[0], kinds[1], np.full(2, np.nan))
