"""How far two distributions lie apart: one minus their Chernoff coefficient."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workflow_scripts.core.errors import UserError

# Keysers et al. 2020, section 2.1. Atoms should be distributed alike in train and test. Of a compound it matters
# that train has it at all, more than how often.
ATOMS_ALPHA = 0.5
COMPOUNDS_ALPHA = 0.1


def chernoff(p: ArrayLike, q: ArrayLike, alpha: float) -> float:
    """The Chernoff coefficient Σ p^alpha q^(1−alpha) of two distributions over the same items.

    ``p`` and ``q``: vectors of equal length, none negative, each of sum 1. ``alpha``: strictly between 0 and 1.
    1 for equal distributions, 0 for those that share no item. Source: Keysers et al. 2020, section 2.1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}: it must lie strictly between 0 and 1")
    return float(np.dot(np.power(p, alpha), np.power(q, 1 - alpha)))


def divergence(train: ArrayLike, test: ArrayLike, alpha: float) -> float:
    """One minus the Chernoff coefficient of train (as P) and test (as Q), in [0, 1].

    ``train`` and ``test``: vectors of equal length of weights that are not negative; each is divided by its sum.
    Raises UserError when a side weighs nothing: it has no distribution.
    """
    train, test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    totals = train.sum(), test.sum()
    for side, total in zip(("train", "test"), totals, strict=True):
        if not total > 0:
            raise UserError(f"{side} is empty, or weighs nothing: no divergence can be measured")
    # Rounding alone can leave [0, 1].
    return min(max(1.0 - chernoff(train / totals[0], test / totals[1], alpha), 0.0), 1.0)
