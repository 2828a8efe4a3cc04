"""A share of compounds with its interval: a bootstrap over compounds, and an exact one where all or none count."""

from __future__ import annotations

import numpy as np
from scipy import stats

from workflow_scripts.score import interval
from workflow_scripts.score.interval import LEVEL, Estimate


def share(
    compounds: np.ndarray, counts: np.ndarray, weights: np.ndarray, resamples: int, generator: np.random.Generator
) -> Estimate:
    """The weighted share of answers (n,) that count, n >= 1, and its interval; ``compounds``: of each answer its own.

    Where all count or none does, each resample is the same: the interval then is that of Clopper and Pearson, over as
    many trials as there are compounds.
    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
    (Biometrika, 1934).
    """
    counts = np.asarray(counts, bool)
    if not counts.all() and counts.any():
        return interval.mean(compounds, counts.astype(float), weights, resamples, generator)
    trials = len(np.unique(compounds))
    ends = stats.binomtest(trials if counts.all() else 0, trials).proportion_ci(LEVEL, method="exact")
    return Estimate(float(counts.all()), float(ends.low), float(ends.high))
