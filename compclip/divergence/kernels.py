"""Compiled kernels for dividing samples: gains of the greedy algorithm, and exchanges.

The overlap is Σ train^alpha test^(1 − alpha) over the weights of atoms or of compounds. Functions that call each other
are in one file, because numba's cache of a function does not notice changes in other files.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

TRAIN, TEST = 0, 1
# Scores of the greedy algorithm are compared to ten decimals.
DECIMALS = 1e10
# How much more a D_A above its upper bound counts than a deviation of D_C.
PENALTY = 1e12


class Items(NamedTuple):
    """Samples × items (atoms, or compounds), by sample and by item; ``exponents`` of train and of test."""

    exponents: np.ndarray
    starts: np.ndarray
    items: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    item_starts: np.ndarray
    holders: np.ndarray
    # Ascending for each item, so that equal weights are raised to a power once.
    holder_weights: np.ndarray


class Sides(NamedTuple):
    """The weights of train (0) and test (1), and what each sample would add to the overlap on either side."""

    weights: np.ndarray  # 2 × items
    powers: np.ndarray  # weights to the power of the side's exponent
    totals: np.ndarray  # 2
    overlap: np.ndarray  # 1: the sum over items of the product of both powers
    gains: np.ndarray  # 2 × samples


class Goal(NamedTuple):
    """The wanted D_A and D_C; ``bound``: D_A is an upper bound, which comes before D_C."""

    atom: float
    compound: float
    bound: bool


class Kind(NamedTuple):
    """Atoms or compounds: the samples' items, the sides' weights, and scratch space."""

    items: Items
    sides: Sides
    change: np.ndarray  # one per item, zeros between calls
    touched: np.ndarray  # items of two samples


def as_kind(matrix: sparse.csr_array, alpha: float) -> Kind:
    """Return a matrix of samples × items in the form that the kernels take, with empty sides."""
    n, n_items = matrix.shape
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    order = np.lexsort((rows, matrix.data, matrix.indices))
    counts = np.bincount(matrix.indices, minlength=n_items)
    items = Items(
        np.array([alpha, 1 - alpha]), matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data,
        np.asarray(matrix.sum(axis=1)).ravel(), np.concatenate([[0], counts.cumsum()]), rows[order],
        matrix.data[order],
    )  # fmt: skip
    sides = Sides(np.zeros((2, n_items)), np.zeros((2, n_items)), np.zeros(2), np.zeros(1), np.zeros((2, n)))
    return Kind(items, sides, np.zeros(n_items), np.zeros(2 * int(np.diff(matrix.indptr).max()), np.int64))


@njit(cache=True)
def power(x, exponent):
    return np.sqrt(x) if exponent == 0.5 else x**exponent


@njit(cache=True)
def deviation(reached, wanted):
    """Return the deviation from a wanted divergence; 1 if the divergence is undefined."""
    return 1.0 if np.isnan(reached) else abs(reached - wanted)


@njit(cache=True)
def score(goal, atom, compound):
    """Return the score of the reached D_A and D_C; lower is better."""
    off = deviation(atom, goal.atom)
    if goal.bound:
        off = PENALTY * (off if np.isnan(atom) or atom > goal.atom else 0.0)
    return deviation(compound, goal.compound) + off


@njit(cache=True)
def renew(kind):
    """Compute overlap and gains anew from the weights."""
    items, sides = kind.items, kind.sides
    sides.overlap[0] = 0.0
    sides.gains[:] = 0.0
    for item in range(sides.weights.shape[1]):
        train, test = sides.powers[TRAIN, item], sides.powers[TEST, item]
        sides.overlap[0] += train * test
        last = -1.0
        for i in range(items.item_starts[item], items.item_starts[item + 1]):
            weight = items.holder_weights[i]
            if weight != last:
                last = weight
                on_train = (power(sides.weights[TRAIN, item] + weight, items.exponents[TRAIN]) - train) * test
                on_test = (power(sides.weights[TEST, item] + weight, items.exponents[TEST]) - test) * train
            sides.gains[TRAIN, items.holders[i]] += on_train
            sides.gains[TEST, items.holders[i]] += on_test


@njit(cache=True)
def place(kind, sample, side):
    items, sides, other = kind.items, kind.sides, 1 - side
    exponent, other_exponent = items.exponents[side], items.exponents[other]
    for j in range(items.starts[sample], items.starts[sample + 1]):
        item = items.items[j]
        old, old_power = sides.weights[side, item], sides.powers[side, item]
        new = old + items.weights[j]
        new_power = power(new, exponent)
        beside, beside_power = sides.weights[other, item], sides.powers[other, item]
        sides.overlap[0] += (new_power - old_power) * beside_power
        last = -1.0
        for i in range(items.item_starts[item], items.item_starts[item + 1]):
            weight = items.holder_weights[i]
            if weight != last:
                last = weight
                here = power(new + weight, exponent) - new_power - power(old + weight, exponent) + old_power
                here *= beside_power
                there = (power(beside + weight, other_exponent) - beside_power) * (new_power - old_power)
            sides.gains[side, items.holders[i]] += here
            sides.gains[other, items.holders[i]] += there
        sides.weights[side, item], sides.powers[side, item] = new, new_power
    sides.totals[side] += items.totals[sample]


@njit(cache=True)
def divergence_with(kind, sample, side, other_power):
    """Return the divergence once ``sample`` is on ``side``; ``other_power`` is the power of the other side's total."""
    items, sides = kind.items, kind.sides
    total = sides.totals[side] + items.totals[sample]
    if total == 0.0 or other_power == 0.0:
        return np.nan
    overlap = sides.overlap[0] + sides.gains[side, sample]
    return 1.0 - overlap / (power(total, items.exponents[side]) * other_power)


@njit(cache=True)
def take(atoms, compounds, goal, sizes, side_of, taken, reached, begin, end):
    """Run steps ``begin`` to ``end`` of the greedy algorithm: fill ``side_of``, ``taken`` and ``reached``."""
    placed = np.array([np.sum(side_of == TRAIN), np.sum(side_of == TEST)])
    for step in range(begin, end):
        side = TRAIN if placed[TRAIN] * sizes[TEST] <= placed[TEST] * sizes[TRAIN] else TEST
        other = 1 - side
        atom_power = power(atoms.sides.totals[other], atoms.items.exponents[other])
        compound_power = power(compounds.sides.totals[other], compounds.items.exponents[other])
        lowest, best = np.inf, -1
        for sample in range(len(side_of)):
            if side_of[sample] < 0:
                atom = divergence_with(atoms, sample, side, atom_power)
                compound = divergence_with(compounds, sample, side, compound_power)
                rounded = np.rint((deviation(compound, goal.compound) + deviation(atom, goal.atom)) * DECIMALS)
                if rounded < lowest:
                    lowest, best = rounded, sample
                    reached[0, step], reached[1, step] = atom, compound
        place(atoms, best, side)
        place(compounds, best, side)
        side_of[best], taken[step] = side, best
        placed[side] += 1


@njit(cache=True)
def after_exchange_of(kind, out, into, side, both):
    """Return divergence and overlap once ``into`` replaces ``out`` on ``side``; if ``both``, also the reverse."""
    items, sides, other = kind.items, kind.sides, 1 - side
    count = 0
    for sample, sign in ((out, -1.0), (into, 1.0)):
        for j in range(items.starts[sample], items.starts[sample + 1]):
            kind.change[items.items[j]] += sign * items.weights[j]
            kind.touched[count] = items.items[j]
            count += 1
    overlap = sides.overlap[0]
    for item in kind.touched[:count]:
        more = kind.change[item]
        if more != 0.0:
            kind.change[item] = 0.0
            here = power(sides.weights[side, item] + more, items.exponents[side])
            there = sides.powers[other, item]
            if both:
                there = power(sides.weights[other, item] - more, items.exponents[other])
            overlap += here * there - sides.powers[side, item] * sides.powers[other, item]
    more = items.totals[into] - items.totals[out]
    here, there = sides.totals[side] + more, sides.totals[other] - (more if both else 0.0)
    if here == 0.0 or there == 0.0:
        return np.nan, overlap
    return 1.0 - overlap / (power(here, items.exponents[side]) * power(there, items.exponents[other])), overlap


@njit(cache=True)
def swap(kind, out, into, side, both, overlap):
    items, sides, other = kind.items, kind.sides, 1 - side
    for sample, sign in ((out, -1.0), (into, 1.0)):
        for j in range(items.starts[sample], items.starts[sample + 1]):
            item, more = items.items[j], sign * items.weights[j]
            sides.weights[side, item] += more
            sides.powers[side, item] = power(sides.weights[side, item], items.exponents[side])
            if both:
                sides.weights[other, item] -= more
                sides.powers[other, item] = power(sides.weights[other, item], items.exponents[other])
        sides.totals[side] += sign * items.totals[sample]
        if both:
            sides.totals[other] -= sign * items.totals[sample]
    sides.overlap[0] = overlap


@njit(cache=True)
def sum_up(kind):
    """Compute the overlap anew from the powers, because a sum of differences drifts."""
    kind.sides.overlap[0] = np.sum(kind.sides.powers[TRAIN] * kind.sides.powers[TEST])


@njit(cache=True)
def after_exchange(atoms, compounds, goal, out, into, side, both):
    """Return the score, and both overlaps, after an exchange as in ``after_exchange_of``."""
    atom, atom_overlap = after_exchange_of(atoms, out, into, side, both)
    compound, compound_overlap = after_exchange_of(compounds, out, into, side, both)
    return score(goal, atom, compound), atom_overlap, compound_overlap


@njit(cache=True)
def descend(atoms, compounds, goal, draws, order, sizes):
    """Try an exchange for each row of ``draws`` and make it if the score falls; return the score.

    Args:
        draws: (n, 2) numbers in [0, 1): the placed sample, and the one that it changes places with.
        order: the rows of train, then of test, then of the pool.
    """
    n, n_train, placed = len(order), sizes[TRAIN], sizes[TRAIN] + sizes[TEST]
    sum_up(atoms)
    sum_up(compounds)
    # Exchanging a sample with itself changes nothing.
    current, _, _ = after_exchange(atoms, compounds, goal, order[0], order[0], TRAIN, False)
    for move in range(len(draws)):
        i, j = int(draws[move, 0] * placed), int(draws[move, 1] * n)
        side = TRAIN if i < n_train else TEST
        if j < placed and (j < n_train) == (side == TRAIN):
            continue
        out, into, both = order[i], order[j], j < placed
        after, atom_overlap, compound_overlap = after_exchange(atoms, compounds, goal, out, into, side, both)
        if after < current:
            swap(atoms, out, into, side, both, atom_overlap)
            swap(compounds, out, into, side, both, compound_overlap)
            order[i], order[j], current = into, out, after
    return current


@njit(cache=True)
def clear(atoms, compounds, goal, item, luck, order, sizes):
    """Exchange each train sample that holds ``item``; return False, unchanged, if the others have no room."""
    n, n_train, placed = len(order), sizes[TRAIN], sizes[TRAIN] + sizes[TEST]
    holds = np.zeros(n, np.bool_)
    for i in range(compounds.items.item_starts[item], compounds.items.item_starts[item + 1]):
        holds[compounds.items.holders[i]] = True
    leaving = np.sum(holds[order[:n_train]])
    if leaving == 0 or leaving > np.sum(~holds[order[n_train:]]):
        return False
    sum_up(atoms)
    sum_up(compounds)
    for i in range(n_train):
        out = order[i]
        if not holds[out]:
            continue
        lowest, best, atom_overlap, compound_overlap = np.inf, -1, 0.0, 0.0
        for draw in luck[i]:
            j = n_train + int(draw * (n - n_train))
            # The next sample without the item, from the start after the end.
            while holds[order[j]]:
                j = j + 1 if j + 1 < n else n_train
            both = j < placed
            after, of_atoms, of_compounds = after_exchange(atoms, compounds, goal, out, order[j], TRAIN, both)
            if after < lowest:
                lowest, best, atom_overlap, compound_overlap = after, j, of_atoms, of_compounds
        into, both = order[best], best < placed
        swap(atoms, out, into, TRAIN, both, atom_overlap)
        swap(compounds, out, into, TRAIN, both, compound_overlap)
        order[i], order[best] = into, out
    return True
