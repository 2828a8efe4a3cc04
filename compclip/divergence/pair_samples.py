"""Images as samples by the definition ``pairs``: adjectives and nouns are atoms, pairs are
compounds.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse

from compclip.core.artifacts.heldout import pair_names
from compclip.core.tables import CAPTION_KEY
from compclip.divergence.samples import Samples

CHANGE_KEY = [*CAPTION_KEY, "adjective_start"]


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
    n = len(sample_ids)
    row_of = pd.Series(np.arange(n), index=pd.Index(sample_ids), dtype="int64")
    # Names are made for distinct pairs only: for all occurrences, they would take gigabytes.
    distinct = occurrences[["adjective", "noun"]].drop_duplicates().astype("str")
    pairs = occurrences.groupby(["adjective", "noun"], sort=False).ngroup().to_numpy()
    is_ranked = pair_names(distinct).isin(pair_names(ranking)).to_numpy()
    is_in_sample = occurrences["image_id"].isin(row_of.index).to_numpy()
    counts = is_ranked[pairs] & is_in_sample
    sample_of = occurrences.loc[counts, "image_id"]
    rows = row_of.loc[sample_of].to_numpy()
    used, pairs = np.unique(pairs[counts], return_inverse=True)
    distinct = distinct.iloc[used]
    words = pd.concat(["adjective:" + distinct["adjective"], "noun:" + distinct["noun"]])
    atom_columns, atom_names = pd.factorize(words, sort=True)
    compound_columns, compound_names = pd.factorize(pair_names(distinct), sort=True)
    # The words of all pairs are their adjectives, then their nouns.
    adjective_columns, noun_columns = atom_columns.reshape(2, -1)
    columns = np.concatenate([adjective_columns[pairs], noun_columns[pairs]])
    atoms = _count(np.tile(rows, 2), columns, (n, len(atom_names)))
    compounds = _count(rows, compound_columns[pairs], (n, len(compound_names)))
    return Samples(atoms, compounds, [*map(str, atom_names)], [*map(str, compound_names)])


def _count(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Return how often each row and column occur together."""
    # Entries at the same place are added.
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape)


def swapped_occurrences(pairs: pd.DataFrame, swapped: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the occurrences of ``pairs`` in the swapped captions, with the changed adjectives.

    Also returns the number of changes without an occurrence: a published swap may change other
    words.
    """
    # An empty table has columns of objects, which cannot be merged with numbers.
    changes = _changes(swapped).astype(pairs[CHANGE_KEY].dtypes.to_dict())
    occurrences = pairs.merge(swapped[CAPTION_KEY], on=CAPTION_KEY)
    keys = occurrences[CHANGE_KEY].drop_duplicates()
    n_matched = len(changes.merge(keys, on=CHANGE_KEY))
    occurrences = occurrences.merge(changes, on=CHANGE_KEY, how="left")
    adjective = occurrences["new"].fillna(occurrences["adjective"])
    return occurrences.assign(adjective=adjective), len(changes) - n_matched


def _changes(swapped: pd.DataFrame) -> pd.DataFrame:
    """Return the new adjective of each change, once."""
    rows = []
    for row in swapped.itertuples(index=False):
        for change in row.changes:
            rows.append((row.image_id, row.caption_id, change["start"], change["new_adj"]))
    changes = pd.DataFrame(rows, columns=[*CHANGE_KEY, "new"])
    return changes.drop_duplicates(CHANGE_KEY)
