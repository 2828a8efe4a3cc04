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
class Cap:
    """How dominant pairs are reduced."""

    kept: dict[str, int]  # entries to keep of each dominant pair; empty if there are too few pairs
    counts: dict[str, int]  # number of entries of each pair
    rule: str  # in words


def cap_dominant(pairs: Sequence[str], dominant: int = 1, ratio: float = 1.25) -> Cap:
    """Reduce each dominant pair to ``min(n, int(ratio * next))`` entries.

    ``next`` is the count of the most frequent pair that is not dominant; ties are ordered by name.
    """
    # By name first: the second sort is stable, so that ties stay in this order.
    by_name = sorted(Counter(pairs).items())
    counts = sorted(by_name, key=lambda item: -item[1])
    if len(counts) <= dominant:
        unit = "pair" if len(counts) == 1 else "pairs"
        rule = f"no cut: {len(counts)} {unit}, {dominant + 1} needed"
        return Cap({}, dict(counts), rule)
    _, next_count = counts[dominant]
    cap = int(ratio * next_count)
    kept = {pair: min(n, cap) for pair, n in counts[:dominant]}
    reduced = "the most frequent pair" if dominant == 1 else f"the {dominant} most frequent pairs"
    return Cap(kept, dict(counts), f"{reduced}, to {ratio:g} times the next")


def weights(pairs: Sequence[str], cap: Cap) -> np.ndarray:
    """Return (n,): the weight of each entry in the exact score, kept / n in a dominant pair and 1
    in others.
    """
    weight_by_pair = {pair: n / cap.counts[pair] for pair, n in cap.kept.items()}
    return np.array([weight_by_pair.get(pair, 1.0) for pair in pairs], dtype=np.float64)


def subsample(pairs: Sequence[str], cap: Cap, seed: int) -> np.ndarray:
    """Return (n,): whether a seeded subsample keeps each entry for the sampled score; ``pairs``
    have a fixed order.
    """
    names = np.asarray(pairs, dtype=object)
    keep = np.ones(len(names), bool)
    for pair, size in cap.kept.items():
        rows = np.flatnonzero(names == pair)
        # A stream for each pair, so that a change of one leaves the others as they are.
        generator = rng(seed, "balance", pair)
        keep[rows] = False
        keep[generator.choice(rows, size, replace=False)] = True
    return keep
