"""The weight of a compound with structure in a sample: W(G, R) of Keysers et al. 2020, section 2.1.

W(G, R) is the maximum over the occurrences g of G in R of one minus the maximum over the occurrences in R that strictly
contain g (of any compound G') of P(G'|G), the fraction of the samples with G in which an occurrence of G' contains one
of G. An occurrence within no other weighs 1. A compound that occurs only within one larger compound weighs 0. W(G) is
the sum over samples.
"""

import numpy as np
from scipy import sparse

# Pairs of occurrences compared at once: 128 MiB of words.
BLOCK = 1 << 24


def containments(members: sparse.csr_array, block: int = BLOCK) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of occurrences of one sample of which the second strictly contains the first, as two arrays.

    ``members`` is occurrences × elements: 1 if a node or an edge of the sample belongs to the occurrence.
    """
    n = members.shape[0]
    used = np.unique(members.indices)
    bits = np.packbits(members[:, used].toarray().astype(bool), axis=1)
    words = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)
    size = np.diff(members.indptr)
    rows = max(1, block // n)
    lower, upper = [], []
    for start in range(0, n, rows):
        block_rows = slice(start, start + rows)
        inside = size[block_rows, None] < size
        for word in words.T:
            inside &= (word[block_rows, None] & ~word) == 0
        inner, outer = np.divmod(np.flatnonzero(inside), n)
        lower.append(inner + start)
        upper.append(outer)
    return np.concatenate(lower), np.concatenate(upper)


def weigh(
    sample: np.ndarray, compound: np.ndarray, lower: np.ndarray, upper: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """Return W(G, R), samples × compounds, without entries of 0; occurrence ``upper`` strictly contains ``lower``."""
    sample, compound = np.asarray(sample, np.int64), np.asarray(compound, np.int64)
    n_samples, n_compounds = shape
    present, place = np.unique(compound * n_samples + sample, return_inverse=True)
    having = np.bincount(present // max(1, n_samples), minlength=n_compounds)

    # P(G'|G): a sample counts once for each pair (G, G').
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
    """Return W(G, R), samples × compounds, of occurrences as ``_Reader`` collects them, ascending by sample."""
    sample = np.asarray(sample, np.int64)
    lower, upper = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    ends = np.flatnonzero(np.diff(sample, append=-1)) + 1
    begin = 0
    for end in ends.tolist():
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
    """Return the columns of the ``keep`` largest W(G) above 0, ascending; ties go to the first columns."""
    # Sums of equal weights can differ in the last digits.
    order = np.argsort(-np.round(totals, 9), kind="stable")[:keep]
    return np.sort(order[totals[order] > 0])
