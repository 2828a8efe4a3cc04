"""Images as samples by the definition ``pairs``: adjectives and nouns are atoms, their pairs compounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from workflow_scripts.core.heldout import pair_names
from workflow_scripts.divergence.samples import Samples, count_matrix


def pair_samples(occurrences: pd.DataFrame, ranking: pd.DataFrame, sample_ids: Sequence[str]) -> Samples:
    """A sample for each of ``sample_ids``, in their order; one of which nothing counts is empty.

    occurrences: image_id (of the sample that says it), adjective, noun; those of other samples are left out. ranking:
    columns of ``tables.RANKING``. Each occurrence of a ranked pair is one of the atoms ``adjective:red`` and
    ``noun:wing`` and one of the compound ``red_wing``. Disputed ones count too: the union of what surface and parse
    find is what holds out, so that a held-out pair weighs nothing in train, and one that weighs nothing in train can
    be held out.
    """
    row = pd.Series(np.arange(len(sample_ids)), index=pd.Index(sample_ids), dtype="int64")
    said = occurrences[occurrences["image_id"].isin(row.index)]
    said = said.assign(pair=pair_names(said))
    said = said[said["pair"].isin(pair_names(ranking))]
    rows = row.loc[said["image_id"]].to_numpy()
    atoms = pd.concat(["adjective:" + said["adjective"], "noun:" + said["noun"]])
    atom_columns, atom_names = pd.factorize(atoms, sort=True)
    pair_columns, compound_names = pd.factorize(said["pair"], sort=True)
    return Samples(
        count_matrix(np.tile(rows, 2), atom_columns, (len(row), len(atom_names))),
        count_matrix(rows, pair_columns, (len(row), len(compound_names))),
        [str(name) for name in atom_names],
        [str(name) for name in compound_names],
    )
