"""The divergence of two distributions: one minus their Chernoff coefficient."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from compclip.core.errors import UserError

# Keysers et al. 2020, section 2.1. Atoms should have the same distribution in train and test.
# Whether train has a compound matters more than how often.
ATOMS_ALPHA = 0.5
COMPOUNDS_ALPHA = 0.1


def chernoff(p: ArrayLike, q: ArrayLike, alpha: float) -> float:
    """Return Σ p^alpha q^(1−alpha): 1 for equal distributions, 0 for those that share no item."""
    return float(np.dot(np.power(p, alpha), np.power(q, 1 - alpha)))


def divergence(train: ArrayLike, test: ArrayLike, alpha: float) -> float:
    """Return one minus the Chernoff coefficient of weights, each side divided by its sum; UserError
    if a sum is 0.
    """
    p = _distribution("train", train)
    q = _distribution("test", test)
    # Rounding can exceed [0, 1].
    return min(max(1.0 - chernoff(p, q, alpha), 0.0), 1.0)


def _distribution(name: str, weights: ArrayLike) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    total = weights.sum()
    # ``not >`` refuses NaN, too.
    if not total > 0:
        # This text becomes a warning in divergence.json.
        raise UserError(f"{name} is empty, or weighs nothing: no divergence can be measured")
    return weights / total


class Totals(NamedTuple):
    """The weights of a side's atoms and compounds."""

    atoms: np.ndarray
    compounds: np.ndarray


def divergences(train: Totals, test: Totals) -> tuple[float, float]:
    """Return D_A and D_C (Keysers et al. 2020, section 2.1), in [0, 1]; UserError if a side is
    empty.
    """
    atom = divergence(train.atoms, test.atoms, ATOMS_ALPHA)
    compound = divergence(train.compounds, test.compounds, COMPOUNDS_ALPHA)
    return atom, compound
