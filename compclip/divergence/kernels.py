"""Compiled kernels for dividing samples: gains of the greedy algorithm, and exchanges.

The overlap is Σ train^alpha test^(1 − alpha) over the weights of atoms or of compounds. Functions
that call each other are in one file, because numba's cache of a function ignores changes in other
files.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

TRAIN, TEST = 0, 1
# Scores of the greedy algorithm are compared to ten decimals.
SCORE_SCALE = 1e10
# Weight of a D_A above its upper bound, relative to a deviation of D_C.
PENALTY = 1e12


class Goal(NamedTuple):
    """The wanted D_A and D_C; ``bound``: D_A is an upper bound, which takes priority over D_C."""

    atom: float
    compound: float
    bound: bool


class Kind(NamedTuple):
    """Atoms or compounds: the weights of samples by item, the sides of a division, and scratch
    space.
    """

    exponents: np.ndarray  # of train (0) and of test (1)
    starts: (
        np.ndarray
    )  # begins of each sample's entries in ``items`` and ``item_weights``, and the end
    items: np.ndarray
    item_weights: np.ndarray
    sample_totals: np.ndarray
    holder_starts: (
        np.ndarray
    )  # begins of each item's entries in ``holders`` and ``holder_weights``, and the end
    holders: np.ndarray  # samples
    holder_weights: (
        np.ndarray
    )  # ascending for each item, so that equal weights are raised to a power only once
    weights: np.ndarray  # 2 × items: weights in train and in test
    powers: np.ndarray  # weights to the power of the side's exponent
    totals: np.ndarray  # 2
    overlap: np.ndarray  # 1: the sum over items of the product of both powers
    gains: np.ndarray  # 2 × samples: the gain in overlap if the sample joins a side
    change: np.ndarray  # one per item, zeros between calls
    touched: np.ndarray  # items of two samples


class State(NamedTuple):
    """A division in progress: ``order`` has the rows of train, then of test, then of the pool."""

    order: np.ndarray
    sizes: np.ndarray  # of train and test
    atoms: Kind
    compounds: Kind


def as_kind(matrix: sparse.csr_array, alpha: float) -> Kind:
    """Return a matrix of samples × items in the form that the kernels take, with empty sides."""
    n, n_items = matrix.shape
    sizes = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(n), sizes)
    order = np.lexsort((rows, matrix.data, matrix.indices))
    counts = np.bincount(matrix.indices, minlength=n_items)
    return Kind(
        np.array([alpha, 1 - alpha]),
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data,
        np.asarray(matrix.sum(axis=1)).ravel(),
        np.concatenate([[0], counts.cumsum()]),
        rows[order],
        matrix.data[order],
        weights=np.zeros((2, n_items)),
        powers=np.zeros((2, n_items)),
        totals=np.zeros(2),
        overlap=np.zeros(1),
        gains=np.zeros((2, n)),
        change=np.zeros(n_items),
        touched=np.zeros(2 * int(sizes.max()), np.int64),
    )


@njit(cache=True)
def power(x, exponent):
    return np.sqrt(x) if exponent == 0.5 else x**exponent


@njit(cache=True)
def deviation(reached, wanted):
    """Return the deviation from a wanted divergence; 1 if the divergence is undefined."""
    return 1.0 if np.isnan(reached) else abs(reached - wanted)


@njit(cache=True)
def target_score(goal, atom, compound):
    """Return the score of the reached D_A and D_C; lower is better."""
    off = deviation(atom, goal.atom)
    if goal.bound:
        off = PENALTY * (off if np.isnan(atom) or atom > goal.atom else 0.0)
    return deviation(compound, goal.compound) + off


@njit(cache=True)
def renew(kind):
    """Recompute overlap and gains from the weights."""
    kind.overlap[0] = 0.0
    kind.gains[:] = 0.0
    for item in range(kind.weights.shape[1]):
        train, test = kind.powers[TRAIN, item], kind.powers[TEST, item]
        kind.overlap[0] += train * test
        last = -1.0
        for i in range(kind.holder_starts[item], kind.holder_starts[item + 1]):
            weight = kind.holder_weights[i]
            if weight != last:
                last = weight
                on_train = (
                    power(kind.weights[TRAIN, item] + weight, kind.exponents[TRAIN]) - train
                ) * test
                on_test = (
                    power(kind.weights[TEST, item] + weight, kind.exponents[TEST]) - test
                ) * train
            kind.gains[TRAIN, kind.holders[i]] += on_train
            kind.gains[TEST, kind.holders[i]] += on_test


@njit(cache=True)
def place(kind, sample, side):
    other = 1 - side
    exponent, other_exponent = kind.exponents[side], kind.exponents[other]
    for j in range(kind.starts[sample], kind.starts[sample + 1]):
        item = kind.items[j]
        old, old_power = kind.weights[side, item], kind.powers[side, item]
        new = old + kind.item_weights[j]
        new_power = power(new, exponent)
        beside, beside_power = kind.weights[other, item], kind.powers[other, item]
        kind.overlap[0] += (new_power - old_power) * beside_power
        last = -1.0
        for i in range(kind.holder_starts[item], kind.holder_starts[item + 1]):
            weight = kind.holder_weights[i]
            if weight != last:
                last = weight
                here = (
                    power(new + weight, exponent)
                    - new_power
                    - power(old + weight, exponent)
                    + old_power
                )
                here *= beside_power
                there = (power(beside + weight, other_exponent) - beside_power) * (
                    new_power - old_power
                )
            kind.gains[side, kind.holders[i]] += here
            kind.gains[other, kind.holders[i]] += there
        kind.weights[side, item], kind.powers[side, item] = new, new_power
    kind.totals[side] += kind.sample_totals[sample]


@njit(cache=True)
def divergence_with(kind, sample, side, other_power):
    """Return the divergence once ``sample`` is on ``side``; ``other_power`` is the power of the
    other side's total.
    """
    total = kind.totals[side] + kind.sample_totals[sample]
    if total == 0.0 or other_power == 0.0:
        return np.nan
    overlap = kind.overlap[0] + kind.gains[side, sample]
    return 1.0 - overlap / (power(total, kind.exponents[side]) * other_power)


@njit(cache=True)
def take_samples(atoms, compounds, goal, sizes, side_of, taken, reached, begin, end):
    """Run steps ``begin`` to ``end`` of the greedy algorithm: fill ``side_of``, ``taken`` and
    ``reached``.
    """
    placed = np.array([np.sum(side_of == TRAIN), np.sum(side_of == TEST)])
    for step in range(begin, end):
        side = TRAIN if placed[TRAIN] * sizes[TEST] <= placed[TEST] * sizes[TRAIN] else TEST
        other = 1 - side
        atom_power = power(atoms.totals[other], atoms.exponents[other])
        compound_power = power(compounds.totals[other], compounds.exponents[other])
        lowest, best = np.inf, -1
        for sample in range(len(side_of)):
            if side_of[sample] < 0:
                atom = divergence_with(atoms, sample, side, atom_power)
                compound = divergence_with(compounds, sample, side, compound_power)
                rounded = np.rint(
                    (deviation(compound, goal.compound) + deviation(atom, goal.atom)) * SCORE_SCALE
                )
                if rounded < lowest:
                    lowest, best = rounded, sample
                    reached[0, step], reached[1, step] = atom, compound
        place(atoms, best, side)
        place(compounds, best, side)
        side_of[best], taken[step] = side, best
        placed[side] += 1


@njit(cache=True)
def after_exchange_of(kind, out, into, side, both):
    """Return divergence and overlap once ``into`` replaces ``out`` on ``side``; if ``both``, also
    the reverse.
    """
    other, count = 1 - side, 0
    for sample, sign in ((out, -1.0), (into, 1.0)):
        for j in range(kind.starts[sample], kind.starts[sample + 1]):
            kind.change[kind.items[j]] += sign * kind.item_weights[j]
            kind.touched[count] = kind.items[j]
            count += 1
    overlap = kind.overlap[0]
    for item in kind.touched[:count]:
        more = kind.change[item]
        if more != 0.0:
            kind.change[item] = 0.0
            here = power(kind.weights[side, item] + more, kind.exponents[side])
            there = kind.powers[other, item]
            if both:
                there = power(kind.weights[other, item] - more, kind.exponents[other])
            overlap += here * there - kind.powers[side, item] * kind.powers[other, item]
    more = kind.sample_totals[into] - kind.sample_totals[out]
    here, there = kind.totals[side] + more, kind.totals[other] - (more if both else 0.0)
    if here == 0.0 or there == 0.0:
        return np.nan, overlap
    return 1.0 - overlap / (
        power(here, kind.exponents[side]) * power(there, kind.exponents[other])
    ), overlap


@njit(cache=True)
def swap(kind, out, into, side, both, overlap):
    other = 1 - side
    for sample, sign in ((out, -1.0), (into, 1.0)):
        for j in range(kind.starts[sample], kind.starts[sample + 1]):
            item, more = kind.items[j], sign * kind.item_weights[j]
            kind.weights[side, item] += more
            kind.powers[side, item] = power(kind.weights[side, item], kind.exponents[side])
            if both:
                kind.weights[other, item] -= more
                kind.powers[other, item] = power(kind.weights[other, item], kind.exponents[other])
        kind.totals[side] += sign * kind.sample_totals[sample]
        if both:
            kind.totals[other] -= sign * kind.sample_totals[sample]
    kind.overlap[0] = overlap


@njit(cache=True)
def sum_up(state):
    """Recompute the overlaps from the powers, because a sum of differences drifts."""
    for kind in (state.atoms, state.compounds):
        kind.overlap[0] = np.sum(kind.powers[TRAIN] * kind.powers[TEST])


@njit(cache=True)
def after_exchange(state, goal, i, j):
    """Return the score and both overlaps after an exchange of the samples at ``i``, which is
    placed, and ``j``.
    """
    out, into, n_train, placed = (
        state.order[i],
        state.order[j],
        state.sizes[TRAIN],
        state.sizes.sum(),
    )
    side = TRAIN if i < n_train else TEST
    atom, atom_overlap = after_exchange_of(state.atoms, out, into, side, j < placed)
    compound, compound_overlap = after_exchange_of(state.compounds, out, into, side, j < placed)
    return target_score(goal, atom, compound), (atom_overlap, compound_overlap)


@njit(cache=True)
def make_exchange(state, i, j, overlaps):
    """Exchange the samples at ``i`` and ``j``; ``overlaps`` are those that ``after_exchange``
    returns.
    """
    out, into, n_train, placed = (
        state.order[i],
        state.order[j],
        state.sizes[TRAIN],
        state.sizes.sum(),
    )
    side = TRAIN if i < n_train else TEST
    swap(state.atoms, out, into, side, j < placed, overlaps[0])
    swap(state.compounds, out, into, side, j < placed, overlaps[1])
    state.order[i], state.order[j] = into, out


@njit(cache=True)
def descend(state, goal, draws):
    """Try an exchange for each row of ``draws``, and make it if the score falls; return the score.

    Args:
        draws: (n, 2) numbers in [0, 1) that select the placed sample and its partner.
    """
    n, n_train, placed = len(state.order), state.sizes[TRAIN], state.sizes.sum()
    sum_up(state)
    # Exchanging a sample with itself changes nothing.
    current, _ = after_exchange(state, goal, 0, 0)
    for move in range(len(draws)):
        i, j = int(draws[move, 0] * placed), int(draws[move, 1] * n)
        if j < placed and (j < n_train) == (i < n_train):
            continue
        after, overlaps = after_exchange(state, goal, i, j)
        if after < current:
            make_exchange(state, i, j, overlaps)
            current = after
    return current


@njit(cache=True)
def clear(state, goal, compound, luck):
    """Move all samples with ``compound`` out of train; return False, unchanged, if there are too
    few other samples.

    Args:
        luck: (n_train, tries) numbers in [0, 1) that select the samples tried in exchange for each;
            the best is used.
    """
    order, n, n_train = state.order, len(state.order), state.sizes[TRAIN]
    holds = np.zeros(n, np.bool_)
    begin, end = state.compounds.holder_starts[compound : compound + 2]
    holds[state.compounds.holders[begin:end]] = True
    leaving = np.sum(holds[order[:n_train]])
    if leaving == 0 or leaving > np.sum(~holds[order[n_train:]]):
        return False
    sum_up(state)
    for i in range(n_train):
        if not holds[order[i]]:
            continue
        lowest, best, overlaps = np.inf, -1, (0.0, 0.0)
        for draw in luck[i]:
            j = n_train + int(draw * (n - n_train))
            # the next sample without the compound, cyclically
            while holds[order[j]]:
                j = j + 1 if j + 1 < n else n_train
            after, reached = after_exchange(state, goal, i, j)
            if after < lowest:
                lowest, best, overlaps = after, j, reached
        make_exchange(state, i, best, overlaps)
    return True
