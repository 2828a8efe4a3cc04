"""Balance swapped entries, so that a few pairs do not dominate (appendix 1.5, listing 1).

The released code never takes its two-pair branch, because it expects a different spelling of the
data set's name than it is called with, and it fails if there are too few pairs or the second pair
is below the cap. Here the number of dominant pairs is a setting; with too few pairs, all entries
are kept, and the result states this.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compclip.core.seeds import rng


@dataclass(frozen=True)
class Cut:
    """How dominant pairs are reduced."""

    kept: dict[
        str, int
    ]  # number of entries to keep of each dominant pair; empty if there are too few pairs
    counts: dict[str, int]  # number of entries of each pair
    rule: str  # in words


def cut_dominant(pairs: Sequence[str], dominant: int = 1, ratio: float = 1.25) -> Cut:
    """Reduce each dominant pair to ``min(n, int(ratio * next))`` entries.

    ``next`` is the count of the most frequent pair that is not dominant; ties are ordered by name.
    """
    counts = sorted(Counter(pairs).items(), key=lambda item: (-item[1], item[0]))
    if len(counts) <= dominant:
        have = f"{len(counts)} pair{'s' * (len(counts) != 1)}"
        return Cut({}, dict(counts), f"no cut: {have}, {dominant + 1} needed")
    cap = int(ratio * counts[dominant][1])
    kept = {pair: min(n, cap) for pair, n in counts[:dominant]}
    which = "the most frequent pair" if dominant == 1 else f"the {dominant} most frequent pairs"
    return Cut(kept, dict(counts), f"{which}, to {ratio:g} times the next")


def weights(pairs: Sequence[str], cut: Cut) -> np.ndarray:
    """Return (n,): the weight of each entry in the exact score, kept / n in a dominant pair and 1
    in others.
    """
    return np.array(
        [cut.kept[p] / cut.counts[p] if p in cut.kept else 1.0 for p in pairs], dtype=np.float64
    )


def subsample(pairs: Sequence[str], cut: Cut, seed: int) -> np.ndarray:
    """Return (n,): whether a seeded subsample keeps each entry for the sampled score; ``pairs``
    have a fixed order.
    """
    names = np.asarray(pairs, dtype=object)
    keep = np.ones(len(names), bool)
    for pair, m in cut.kept.items():
        rows = np.flatnonzero(names == pair)
        keep[rows] = False
        keep[rng(seed, "balance", pair).choice(rows, m, replace=False)] = True
    return keep
