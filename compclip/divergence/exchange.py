"""Exchanges of samples after the greedy division; Keysers et al. 2020 mention them without details.

An exchange swaps a placed sample with one of the other subset or of the pool, so both sizes stay
the same. Exchanges are drawn at random and made if the score falls. Moving a compound to test gains
little until the last of its samples has left train. Therefore hops follow: a compound is cleared
from train at once, exchanges follow, and an improvement is kept.

An exchange changes the overlap Σ train^alpha test^(1 − alpha) only in the items of its two samples.
"""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
from scipy import sparse

from compclip.divergence.chernoff import ATOMS_ALPHA, COMPOUNDS_ALPHA
from compclip.divergence.kernels import Goal, State, as_kind, clear, descend
from compclip.divergence.samples import Samples

# Number of hops, and the exchanges that each tries, as a fraction of those before the hops.
HOPS, HOP_FRACTION = 400, 0.02
# Exchanges tried for each sample that is cleared; the best is made.
CLEARING = 4
# Weights are rounded to multiples of this, so that their sums are exact: an item that has left a
# subset weighs 0 there, not 1e-17, whose tenth root is 0.02.
WEIGHT_GRID = 2.0**-24
# A score below this counts as 0.
REACHED = 5e-5


def tried(moves: int) -> int:
    """Return the number of exchanges that ``exchange`` tries, including those of the hops."""
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
    """Return rows of train and test after exchanges; ``moves`` are tried before the hops."""
    if goal.bound:
        # Sums in a different order may differ by this.
        goal = goal._replace(atom=goal.atom - 1e-12)
    placed = np.concatenate([train, test])
    pool = np.setdiff1d(np.arange(len(samples)), placed)
    sizes = np.array([len(train), len(test)])
    best = state_of(samples, np.concatenate([placed, pool]), sizes)
    lowest = descend(best, goal, generator.random((moves, 2)))
    advance(moves)
    # Compounds by occurrence: a compound is tried the more often, the more samples have it.
    occurrences = best.compounds.items
    hop_moves = int(moves * HOP_FRACTION)
    for _ in range(HOPS):
        if lowest < REACHED:
            break
        # A copy, so that a hop without improvement leaves nothing behind.
        hop = deepcopy(best)
        compound = occurrences[generator.integers(len(occurrences))]
        luck = generator.random((len(train), CLEARING))
        if clear(hop, goal, compound, luck):
            score = descend(hop, goal, generator.random((hop_moves, 2)))
            if score < lowest:
                best = hop
                lowest = score
        advance(hop_moves)
    train, test, _ = np.split(best.order, np.cumsum(sizes))
    return train, test


def state_of(samples: Samples, order: np.ndarray, sizes: np.ndarray) -> State:
    """Return the state of a division; ``sizes`` are those of train and test."""
    train, test, _ = np.split(order, np.cumsum(sizes))
    kinds = []
    for exact, alpha in ((samples.atoms, ATOMS_ALPHA), (samples.compounds, COMPOUNDS_ALPHA)):
        # Sums of multiples of the grid are exact in any order.
        rounded = np.rint(exact.data / WEIGHT_GRID) * WEIGHT_GRID
        matrix = sparse.csr_array((rounded, exact.indices, exact.indptr), exact.shape)
        kind = as_kind(matrix, alpha)
        for subset, rows in enumerate((train, test)):
            weights = matrix[rows].sum(axis=0)
            kind.weights[subset] = weights
            kind.powers[subset] = weights ** kind.exponents[subset]
        kind.totals[:] = kind.weights.sum(axis=1)
        kinds.append(kind)
    return State(order, sizes, *kinds)
