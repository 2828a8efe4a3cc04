"""Images as samples by the definition ``pairs``: adjectives and nouns are atoms, pairs are
compounds.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse

from compclip.core.heldout import pair_names
from compclip.core.tables import CAPTION_KEY
from compclip.divergence.samples import Samples


def pair_samples(
    occurrences: pd.DataFrame, ranking: pd.DataFrame, sample_ids: Sequence[str] | range
) -> Samples:
    """Return a sample for each of ``sample_ids``, in order; samples without ranked pairs are empty.

    Each occurrence of a ranked pair counts as one of the atoms ``adjective:red`` and ``noun:wing``
    and one of the compound ``red_wing``. Disputed occurrences count too: pairs are held out by the
    union of surface and parse, so a held-out pair has weight 0 in train, and a pair with weight 0
    in train can be held out.

    ``occurrences`` has image_id (of the sample), adjective, noun; occurrences in other samples are
    skipped.
    """
    row = pd.Series(np.arange(len(sample_ids)), index=pd.Index(sample_ids), dtype="int64")
    # Names are made for distinct pairs only: for all occurrences, they would take gigabytes.
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
    atom_columns, rows_of_atoms = atom_columns.reshape(2, -1)[:, kinds].ravel(), np.tile(rows, 2)
    # Entries at the same place are added.
    ones, of_atoms = np.ones(2 * len(rows)), (rows_of_atoms, atom_columns)
    atoms = sparse.csr_array((ones, of_atoms), (len(row), len(atom_names)))
    compounds = sparse.csr_array(
        (ones[: len(rows)], (rows, pair_columns[kinds])), (len(row), len(compound_names))
    )
    return Samples(atoms, compounds, [*map(str, atom_names)], [*map(str, compound_names)])


def swapped_occurrences(pairs: pd.DataFrame, swapped: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the occurrences of ``pairs`` in the swapped captions, with the changed adjectives.

    Also returns the number of changes without an occurrence: a published swap may change other
    words.
    """
    place = [*CAPTION_KEY, "adjective_start"]
    rows = [
        (row.image_id, row.caption_id, change["start"], change["new_adj"])
        for row in swapped.itertuples(index=False)
        for change in row.changes
    ]
    changes = (
        pd.DataFrame(rows, columns=[*place, "new"])
        .astype(pairs[place].dtypes.to_dict())
        .drop_duplicates(place)
    )
    occurrences = pairs.merge(swapped[CAPTION_KEY], on=CAPTION_KEY)
    lost = len(changes) - len(changes.merge(occurrences[place].drop_duplicates(), on=place))
    occurrences = occurrences.merge(changes, on=place, how="left")
    return occurrences.assign(adjective=occurrences["new"].fillna(occurrences["adjective"])), lost
