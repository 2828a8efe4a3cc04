"""What a compound with structure weighs in a sample: W(G, R) of Keysers et al. 2020, section 2.1.

W(G, R) is the maximum, over the occurrences g of G in R, of one minus the maximum, over the occurrences in R that
strictly contain g (of any compound G'), of P(G'|G): the share of the samples with G in which an occurrence of G'
contains one of G. An occurrence within no other weighs 1. A compound that only ever occurs within one larger one
weighs 0: the larger one speaks for it. W(G) is the sum over samples.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

# Pairs of occurrences that are compared at once: 128 MiB of words.
BLOCK = 1 << 24


def containments(members: sparse.csr_array, block: int = BLOCK) -> tuple[np.ndarray, np.ndarray]:
    """Which occurrences of one sample strictly contain which: the contained ones, and those that contain them.

    ``members``: occurrences × elements, 1 where a node or an edge of the sample belongs to the occurrence. A strict
    subgraph has fewer nodes or fewer edges, and none of its own.
    """
    n = members.shape[0]
    used = np.unique(members.indices)
    bits = np.packbits(members[:, used].toarray().astype(bool), axis=1)
    words = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)
    size = np.diff(members.indptr)
    rows = max(1, block // n)
    lower, upper = [], []
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        inside = size[part, None] < size
        for word in words.T:
            inside &= (word[part, None] & ~word) == 0
        inner, outer = np.divmod(np.flatnonzero(inside), n)
        lower.append(inner + start)
        upper.append(outer)
    return np.concatenate(lower), np.concatenate(upper)


def weigh(
    sample: np.ndarray, compound: np.ndarray, lower: np.ndarray, upper: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """W(G, R), samples × compounds, weights of 0 left out.

    ``sample`` and ``compound``: of which sample and of which compound each occurrence is. ``lower`` and ``upper``:
    numbers of occurrences of one sample, of which the second strictly contains the first.
    """
    sample, compound = np.asarray(sample, np.int64), np.asarray(compound, np.int64)
    n_samples, n_compounds = shape
    present, place = np.unique(compound * n_samples + sample, return_inverse=True)
    having = np.bincount(present // max(1, n_samples), minlength=n_compounds)

    # P(G'|G): samples are counted once for each pair (G, G'), however often it occurs there.
    pair = compound[lower] * n_compounds + compound[upper]
    order = np.lexsort((sample[lower], pair))
    pair, of = pair[order], sample[lower][order]
    begins = np.ones(len(pair), dtype=bool)
    begins[1:] = pair[1:] != pair[:-1]
    anew = begins.copy()
    anew[1:] |= of[1:] != of[:-1]
    group = np.cumsum(begins) - 1
    samples_with = np.bincount(group, weights=anew)
    probability = samples_with[group] / having[compound[lower][order]]

    explained = np.zeros(len(sample))
    np.maximum.at(explained, lower[order], probability)
    weight = np.zeros(len(present))
    np.maximum.at(weight, place, 1 - explained)
    columns, rows = np.divmod(present, max(1, n_samples))
    kept = weight > 0
    return sparse.coo_array((weight[kept], (rows[kept], columns[kept])), shape=shape).tocsr()


def occurrence_weights(
    sample: np.ndarray, compound: np.ndarray, starts: np.ndarray, elements: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """W(G, R), samples × compounds, of occurrences in the order of their samples.

    ``sample`` and ``compound``: of which sample (ascending) and of which compound each occurrence is. Occurrence ``i``
    consists of ``elements[starts[i]:starts[i + 1]]``: nodes and edges of its sample, numbered together from 0, each
    once.
    """
    sample = np.asarray(sample, np.int64)
    lower, upper = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    ends = np.flatnonzero(np.diff(sample, append=-1)) + 1
    begin = 0
    for end in ends:
        first, last = starts[begin], starts[end]
        columns = elements[first:last]
        members = sparse.csr_array(
            (np.ones(last - first), columns, starts[begin : end + 1] - first), shape=(end - begin, columns.max() + 1)
        )
        inner, outer = containments(members)
        lower.append(inner + begin)
        upper.append(outer + begin)
        begin = end
    return weigh(sample, compound, np.concatenate(lower), np.concatenate(upper), shape)


def heaviest(totals: np.ndarray, keep: int) -> np.ndarray:
    """The columns of the ``keep`` largest W(G), ascending, without those of 0; of equal ones the first columns."""
    # Sums of the same weights can differ in their last digits.
    order = np.argsort(-np.round(totals, 9), kind="stable")[:keep]
    return np.sort(order[totals[order] > 0])
