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
    """Atoms or compounds: the weights of samples by item, both subsets of a division, and scratch
    space.

    A subset is TRAIN or TEST; samples in neither are in the pool.
    """

    exponents: np.ndarray  # (2,)
    # Sample i has the entries ``starts[i] : starts[i + 1]`` of ``items`` and ``item_weights``.
    starts: np.ndarray
    items: np.ndarray
    item_weights: np.ndarray
    sample_totals: np.ndarray
    # Item i has the entries ``holder_starts[i] : holder_starts[i + 1]`` of the next two arrays,
    # sorted by weight, so that equal weights are raised to a power only once.
    holder_starts: np.ndarray
    holders: np.ndarray  # samples
    holder_weights: np.ndarray
    weights: np.ndarray  # (2, items), summed over each subset's samples
    powers: np.ndarray  # (2, items), weights to the power of the subset's exponent
    totals: np.ndarray  # (2,)
    overlap: np.ndarray  # (1,), the sum over items of the product of both powers
    gains: np.ndarray  # (2, samples), the gain in overlap if the sample joins a subset
    change: np.ndarray  # (items,), zeros between calls
    touched: np.ndarray  # items of two samples


class State(NamedTuple):
    """A division in progress: ``order`` has the rows of train, then of test, then of the pool."""

    order: np.ndarray
    sizes: np.ndarray  # of train and test
    atoms: Kind
    compounds: Kind


class Exchange(NamedTuple):
    """A sample enters a subset for one that leaves it."""

    leaving: int
    entering: int
    subset: int
    both_placed: bool  # the entering sample leaves the opposite subset, not the pool


class Steps(NamedTuple):
    """The steps of the greedy algorithm, each of which places a sample."""

    subset_of: np.ndarray  # (samples,) int8; -1 in the pool
    samples: np.ndarray  # (steps,), the sample placed in each step
    divergences: np.ndarray  # (2, steps), D_A and D_C afterwards; NaN while a subset has no weight


def as_kind(matrix: sparse.csr_array, alpha: float) -> Kind:
    """Return a matrix of samples × items in the form that the kernels take, with empty subsets."""
    n_samples, n_items = matrix.shape
    sizes = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(n_samples), sizes)
    # By item, then by weight; lexsort is stable, so that equal weights stay in the order of rows.
    order = np.lexsort((matrix.data, matrix.indices))
    holder_counts = np.bincount(matrix.indices, minlength=n_items)
    return Kind(
        exponents=np.array([alpha, 1 - alpha]),
        starts=matrix.indptr.astype(np.int64),
        items=matrix.indices.astype(np.int64),
        item_weights=matrix.data,
        sample_totals=np.asarray(matrix.sum(axis=1)).ravel(),
        holder_starts=np.concatenate([[0], holder_counts.cumsum()]),
        holders=rows[order],
        holder_weights=matrix.data[order],
        weights=np.zeros((2, n_items)),
        powers=np.zeros((2, n_items)),
        totals=np.zeros(2),
        overlap=np.zeros(1),
        gains=np.zeros((2, n_samples)),
        change=np.zeros(n_items),
        touched=np.zeros(2 * int(sizes.max()), np.int64),
    )


@njit(cache=True)
def power(x, exponent):
    # Both exponents of D_A are 0.5, and sqrt is the cheapest power.
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
        # An undefined D_A counts as above the bound.
        off = PENALTY * (off if np.isnan(atom) or atom > goal.atom else 0.0)
    return deviation(compound, goal.compound) + off


@njit(cache=True)
def power_gain(kind, subset, item, weight):
    """Return (w + v)^e − w^e for an item of weight w in a subset and of ``weight`` v in a
    sample.
    """
    heavier = power(kind.weights[subset, item] + weight, kind.exponents[subset])
    return heavier - kind.powers[subset, item]


@njit(cache=True)
def renew(kind):
    """Recompute overlap and gains from the weights."""
    train_gains, test_gains = kind.gains
    kind.overlap[0] = 0.0
    kind.gains[:] = 0.0
    for item in range(kind.weights.shape[1]):
        train = kind.powers[TRAIN, item]
        test = kind.powers[TEST, item]
        kind.overlap[0] += train * test
        previous_weight = -1.0  # less than any weight
        for i in range(kind.holder_starts[item], kind.holder_starts[item + 1]):
            weight = kind.holder_weights[i]
            if weight != previous_weight:
                previous_weight = weight
                train_gain = power_gain(kind, TRAIN, item, weight) * test
                test_gain = power_gain(kind, TEST, item, weight) * train
            sample = kind.holders[i]
            train_gains[sample] += train_gain
            test_gains[sample] += test_gain


@njit(cache=True)
def place(kind, sample, subset):
    """Add a sample to a subset; update the overlap and the gains of samples that share an item."""
    opposite = 1 - subset
    exponent = kind.exponents[subset]
    weights = kind.weights[subset]
    powers = kind.powers[subset]
    gains = kind.gains[subset]
    opposite_gains = kind.gains[opposite]
    for j in range(kind.starts[sample], kind.starts[sample + 1]):
        item = kind.items[j]
        old = weights[item]
        old_power = powers[item]
        new = old + kind.item_weights[j]
        new_power = power(new, exponent)
        opposite_power = kind.powers[opposite, item]
        kind.overlap[0] += (new_power - old_power) * opposite_power
        previous_weight = -1.0  # less than any weight
        for i in range(kind.holder_starts[item], kind.holder_starts[item + 1]):
            weight = kind.holder_weights[i]
            if weight != previous_weight:
                previous_weight = weight
                new_gain = power(new + weight, exponent) - new_power
                # In this order of terms: another one rounds differently.
                gain_change = new_gain - power(old + weight, exponent) + old_power
                gain_change *= opposite_power
                opposite_gain = power_gain(kind, opposite, item, weight)
                opposite_change = opposite_gain * (new_power - old_power)
            holder = kind.holders[i]
            gains[holder] += gain_change
            opposite_gains[holder] += opposite_change
        weights[item] = new
        powers[item] = new_power
    kind.totals[subset] += kind.sample_totals[sample]


@njit(cache=True)
def divergence_with(kind, sample, subset, opposite_power):
    """Return the divergence once ``sample`` is in ``subset``; ``opposite_power`` is the power of
    the opposite subset's total.
    """
    total = kind.totals[subset] + kind.sample_totals[sample]
    if total == 0.0 or opposite_power == 0.0:
        return np.nan
    overlap = kind.overlap[0] + kind.gains[subset, sample]
    total_power = power(total, kind.exponents[subset])
    return 1.0 - overlap / (total_power * opposite_power)


@njit(cache=True)
def best_sample(atoms, compounds, goal, subset, subset_of):
    """Return the sample of the pool to place in ``subset``, and the D_A and D_C then reached."""
    opposite = 1 - subset
    # The same for all samples, so computed once.
    atom_power = power(atoms.totals[opposite], atoms.exponents[opposite])
    compound_power = power(compounds.totals[opposite], compounds.exponents[opposite])
    lowest = np.inf
    best = -1
    best_atom = np.nan
    best_compound = np.nan
    for sample in range(len(subset_of)):
        if subset_of[sample] >= 0:
            continue
        atom = divergence_with(atoms, sample, subset, atom_power)
        compound = divergence_with(compounds, sample, subset, compound_power)
        score = deviation(compound, goal.compound) + deviation(atom, goal.atom)
        rounded = np.rint(score * SCORE_SCALE)
        # The first sample of the file wins ties.
        if rounded < lowest:
            lowest = rounded
            best = sample
            best_atom = atom
            best_compound = compound
    return best, best_atom, best_compound


@njit(cache=True)
def take_samples(atoms, compounds, goal, sizes, steps, begin, end):
    """Run the ``Steps`` from ``begin`` to ``end`` of the greedy algorithm."""
    placed = np.array([np.sum(steps.subset_of == TRAIN), np.sum(steps.subset_of == TEST)])
    for step in range(begin, end):
        # Which subset is further behind its size; without a division, which would round.
        is_train_behind = placed[TRAIN] * sizes[TEST] <= placed[TEST] * sizes[TRAIN]
        subset = TRAIN if is_train_behind else TEST
        best, atom, compound = best_sample(atoms, compounds, goal, subset, steps.subset_of)
        place(atoms, best, subset)
        place(compounds, best, subset)
        steps.subset_of[best] = subset
        steps.samples[step] = best
        steps.divergences[0, step] = atom
        steps.divergences[1, step] = compound
        placed[subset] += 1


@njit(cache=True)
def overlap_after(kind, exchange):
    """Return the overlap after an exchange."""
    changes = kind.change
    count = 0
    # An item of both samples changes by the difference, so that it is counted once.
    for sample, sign in ((exchange.leaving, -1.0), (exchange.entering, 1.0)):
        for j in range(kind.starts[sample], kind.starts[sample + 1]):
            item = kind.items[j]
            changes[item] += sign * kind.item_weights[j]
            kind.touched[count] = item
            count += 1
    subset = exchange.subset
    opposite = 1 - subset
    overlap = kind.overlap[0]
    for item in kind.touched[:count]:
        change = changes[item]
        if change != 0.0:
            changes[item] = 0.0
            new_power = power(kind.weights[subset, item] + change, kind.exponents[subset])
            old_opposite_power = kind.powers[opposite, item]
            opposite_power = old_opposite_power
            if exchange.both_placed:
                opposite_weight = kind.weights[opposite, item] - change
                opposite_power = power(opposite_weight, kind.exponents[opposite])
            old_product = kind.powers[subset, item] * old_opposite_power
            overlap += new_power * opposite_power - old_product
    return overlap


@njit(cache=True)
def kind_after_exchange(kind, exchange):
    """Return divergence and overlap after an exchange."""
    subset = exchange.subset
    opposite = 1 - subset
    overlap = overlap_after(kind, exchange)
    change = kind.sample_totals[exchange.entering] - kind.sample_totals[exchange.leaving]
    total = kind.totals[subset] + change
    opposite_total = kind.totals[opposite]
    if exchange.both_placed:
        opposite_total -= change
    # The divergence of a subset without weight is undefined.
    if total == 0.0 or opposite_total == 0.0:
        return np.nan, overlap
    total_power = power(total, kind.exponents[subset])
    opposite_power = power(opposite_total, kind.exponents[opposite])
    return 1.0 - overlap / (total_power * opposite_power), overlap


@njit(cache=True)
def swap(kind, exchange, overlap):
    """Make an exchange, after which there is this overlap."""
    for sample, sign in ((exchange.leaving, -1.0), (exchange.entering, 1.0)):
        add_sample(kind, sample, exchange.subset, sign)
        if exchange.both_placed:
            add_sample(kind, sample, 1 - exchange.subset, -sign)
    kind.overlap[0] = overlap


@njit(cache=True)
def add_sample(kind, sample, subset, sign):
    """Add a sample to the weights of a subset, or subtract it (``sign`` -1)."""
    exponent = kind.exponents[subset]
    weights = kind.weights[subset]
    powers = kind.powers[subset]
    for j in range(kind.starts[sample], kind.starts[sample + 1]):
        item = kind.items[j]
        weights[item] += sign * kind.item_weights[j]
        powers[item] = power(weights[item], exponent)
    kind.totals[subset] += sign * kind.sample_totals[sample]


@njit(cache=True)
def sum_up(state):
    """Recompute the overlaps from the powers, because a sum of differences drifts."""
    for kind in (state.atoms, state.compounds):
        kind.overlap[0] = np.sum(kind.powers[TRAIN] * kind.powers[TEST])


@njit(cache=True)
def exchange_at(state, i, j):
    """Return the exchange of the samples at ``i``, which is placed, and ``j``."""
    subset = TRAIN if i < state.sizes[TRAIN] else TEST
    both_placed = j < state.sizes.sum()
    return Exchange(state.order[i], state.order[j], subset, both_placed)


@njit(cache=True)
def after_exchange(state, goal, i, j):
    """Return the score and both overlaps after an exchange of the samples at ``i``, which is
    placed, and ``j``.
    """
    exchange = exchange_at(state, i, j)
    atom, atom_overlap = kind_after_exchange(state.atoms, exchange)
    compound, compound_overlap = kind_after_exchange(state.compounds, exchange)
    return target_score(goal, atom, compound), (atom_overlap, compound_overlap)


@njit(cache=True)
def make_exchange(state, i, j, overlaps):
    """Exchange the samples at ``i`` and ``j``; ``overlaps`` are those that ``after_exchange``
    returns.
    """
    exchange = exchange_at(state, i, j)
    atom_overlap, compound_overlap = overlaps
    swap(state.atoms, exchange, atom_overlap)
    swap(state.compounds, exchange, compound_overlap)
    state.order[i] = exchange.entering
    state.order[j] = exchange.leaving


@njit(cache=True)
def descend(state, goal, draws):
    """Try an exchange for each row of ``draws``, and make it if the score falls; return the score.

    Args:
        draws: (n, 2) numbers in [0, 1) that select the placed sample and its partner.
    """
    n_samples = len(state.order)
    n_train = state.sizes[TRAIN]
    placed = state.sizes.sum()
    sum_up(state)
    # Exchanging a sample with itself changes nothing.
    current, _ = after_exchange(state, goal, 0, 0)
    for move in range(len(draws)):
        i = int(draws[move, 0] * placed)
        j = int(draws[move, 1] * n_samples)
        # An exchange within a subset changes nothing.
        if j < placed and (j < n_train) == (i < n_train):
            continue
        score, overlaps = after_exchange(state, goal, i, j)
        if score < current:
            make_exchange(state, i, j, overlaps)
            current = score
    return current


@njit(cache=True)
def best_partner(state, goal, i, holds, luck):
    """Return the position outside train of the best sample, of those that ``luck`` selects, to
    exchange with the one at ``i``, and the overlaps then reached.
    """
    n_samples = len(state.order)
    n_train = state.sizes[TRAIN]
    lowest = np.inf
    best = -1
    best_overlaps = (0.0, 0.0)
    for draw in luck:
        j = n_train + int(draw * (n_samples - n_train))
        # the next sample without the compound, cyclically
        while holds[state.order[j]]:
            j = j + 1 if j + 1 < n_samples else n_train
        score, overlaps = after_exchange(state, goal, i, j)
        if score < lowest:
            lowest = score
            best = j
            best_overlaps = overlaps
    return best, best_overlaps


@njit(cache=True)
def clear(state, goal, compound, luck):
    """Move all samples with ``compound`` out of train; return False, unchanged, if there are too
    few other samples.

    Args:
        luck: (n_train, tries) numbers in [0, 1) that select the samples tried in exchange for each;
            the best is used.
    """
    n_train = state.sizes[TRAIN]
    holds = np.zeros(len(state.order), np.bool_)
    compounds = state.compounds
    begin, end = compounds.holder_starts[compound : compound + 2]
    holds[compounds.holders[begin:end]] = True
    leaving = np.sum(holds[state.order[:n_train]])
    # A sample that comes into train in exchange must not have the compound, either.
    if leaving == 0 or leaving > np.sum(~holds[state.order[n_train:]]):
        return False
    sum_up(state)
    for i in range(n_train):
        if holds[state.order[i]]:
            best, overlaps = best_partner(state, goal, i, holds, luck[i])
            make_exchange(state, i, best, overlaps)
    return True
