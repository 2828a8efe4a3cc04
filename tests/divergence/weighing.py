"""Samples of subgraphs, one at a time, as a matrix."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from workflow_scripts.divergence.samples import Samples, collect
from workflow_scripts.divergence.subgraphs import Subgraphs


def samples_of(found: Subgraphs, texts: Sequence[Sequence[int]], keep: int = 100_000) -> Samples:
    """Counts of words, and W(G,R) of the ``keep`` heaviest, of samples of texts; without columns of zeros."""
    weighing = found.weigh(collect(texts), keep, collect([]))
    totals = [weighing.totals(collect([sample])) for sample in texts]
    kept = []
    for kind, names in enumerate((weighing.atom_names, weighing.compound_names)):
        matrix = np.array([total[kind] for total in totals], float).reshape(len(texts), len(names))
        present = np.flatnonzero(matrix.any(axis=0))
        kept.append((csr_array(matrix[:, present]), [names[column] for column in present]))
    (atoms, atom_names), (compounds, compound_names) = kept
    return Samples(atoms, compounds, atom_names, compound_names)
