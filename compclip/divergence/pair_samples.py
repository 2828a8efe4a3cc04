"""Images as samples by the definition ``pairs``: adjectives and nouns are atoms, their pairs compounds."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from compclip.core.heldout import pair_names
from compclip.divergence.samples import Samples, count_matrix


def pair_samples(occurrences: pd.DataFrame, ranking: pd.DataFrame, sample_ids: Sequence[str] | range) -> Samples:
    """Return a sample for each of ``sample_ids``, in their order; a sample in which nothing counts is empty.

    Each occurrence of a ranked pair counts as one of the atoms ``adjective:red`` and ``noun:wing`` and one of the
    compound ``red_wing``. Disputed ones count too: pairs are held out by the union of surface and parse, so a held-out
    pair weighs nothing in train, and a pair that weighs nothing in train can be held out.

    ``occurrences`` has image_id (of the sample), adjective, noun; those of other samples are skipped.
    """
    row = pd.Series(np.arange(len(sample_ids)), index=pd.Index(sample_ids), dtype="int64")
    # Names are made for distinct pairs: those of all occurrences would take gigabytes.
    distinct = occurrences[["adjective", "noun"]].drop_duplicates().astype("str")
    kinds = occurrences.groupby(["adjective", "noun"], sort=False).ngroup().to_numpy()
    ranked = pair_names(distinct).isin(pair_names(ranking)).to_numpy()[kinds]
    ranked &= occurrences["image_id"].isin(row.index).to_numpy()
    rows = row.loc[occurrences.loc[ranked, "image_id"]].to_numpy()
    used, kinds = np.unique(kinds[ranked], return_inverse=True)
    distinct = distinct.iloc[used]
    words = pd.concat(["adjective:" + distinct["adjective"], "noun:" + distinct["noun"]])
    atom_columns, atom_names = pd.factorize(words, sort=True)
    pair_columns, compound_names = pd.factorize(pair_names(distinct), sort=True)
    atom_columns = atom_columns.reshape(2, -1)[:, kinds].ravel()
    atoms = count_matrix(np.tile(rows, 2), atom_columns, (len(row), len(atom_names)))
    compounds = count_matrix(rows, pair_columns[kinds], (len(row), len(compound_names)))
    return Samples(atoms, compounds, [*map(str, atom_names)], [*map(str, compound_names)])
