"""The greedy division as a user would write it with numpy: the baseline of ``divergence``.

At each step, one expression over all entries of a sparse matrix gives the divergences that each
sample would lead to.
"""

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
from scipy.sparse import csr_array

Bag = Mapping[str, float]


def matrix(bags: Sequence[Bag]) -> csr_array:
    column: dict[str, int] = {}
    columns = [column.setdefault(name, len(column)) for bag in bags for name in bag]
    starts = np.cumsum([0, *map(len, bags)])
    weights = np.array([weight for bag in bags for weight in bag.values()], float)
    return csr_array((weights, columns, starts), (len(bags), len(column)))


def reached_divergences(
    samples: csr_array, mine: np.ndarray, other: np.ndarray, alpha: float
) -> np.ndarray:
    """Return (n,) the divergence once each is added to the side of weights ``mine``; NaN if a side
    weighs nothing.
    """
    at = samples.indices
    gains = ((mine[at] + samples.data) ** alpha - mine[at] ** alpha) * other[at] ** (1 - alpha)
    of_samples = csr_array((gains, at, samples.indptr), samples.shape).sum(axis=1)
    overlap = mine**alpha @ other ** (1 - alpha) + of_samples
    totals = (mine.sum() + samples.sum(axis=1)) ** alpha * other.sum() ** (1 - alpha)
    with np.errstate(invalid="ignore"):
        return 1 - overlap / totals


def plain_greedy(
    atoms: Sequence[Bag],
    compounds: Sequence[Bag],
    n_train: int,
    n_test: int,
    atom: float,
    compound: float,
    first: int,
) -> tuple[list[int], list[int], list[tuple[float, float]]]:
    """Train, test, and (D_A, D_C) after each step, as ``divergence.greedy`` divides the same
    samples.
    """
    kinds = [(matrix(atoms), 0.5, atom), (matrix(compounds), 0.1, compound)]
    weights = [np.zeros((2, samples.shape[1])) for samples, _, _ in kinds]
    sides: tuple[list[int], list[int]] = ([], [])
    free, path, chosen, side = np.ones(len(atoms), bool), [(nan, nan)], first, 0
    while True:
        for (samples, _, _), of_kind in zip(kinds, weights, strict=True):
            row = slice(*samples.indptr[chosen : chosen + 2])
            of_kind[side, samples.indices[row]] += samples.data[row]
        sides[side].append(chosen)
        free[chosen] = False
        if len(sides[0]) + len(sides[1]) == n_train + n_test:
            return *sides, path
        side = int(len(sides[0]) * n_test > len(sides[1]) * n_train)
        reached = [
            reached_divergences(samples, of_kind[side], of_kind[1 - side], (alpha, 1 - alpha)[side])
            for (samples, alpha, _), of_kind in zip(kinds, weights, strict=True)
        ]
        off = [
            np.nan_to_num(np.abs(d - wanted), nan=1)
            for d, (_, _, wanted) in zip(reached, kinds, strict=True)
        ]
        chosen = int(np.where(free, np.round(off[0] + off[1], 10), np.inf).argmin())
        path.append((float(reached[0][chosen]), float(reached[1][chosen])))
