"""Which image a model chose: of a compound's three (``tables.CHOICES``), or of all (``tables.RETRIEVAL``)."""

import numpy as np
import pandas as pd


def is_tied(choices: pd.DataFrame) -> pd.Series:
    """Return which answers (n,) are wrong because the compound's image ties with a distractor."""
    rival = choices[["similarity_n1", "similarity_n2"]].max(axis=1)
    return (choices["similarity_compound"] == rival) & ~choices["right"]


def standings(similarities: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many images beat a compound's own, and how many others tie with it: (n,) each.

    similarities: (n, m), of n texts with m distinct images, since a duplicate would tie with itself; own: (n,) columns.
    """
    mine = np.take_along_axis(similarities, own[:, None], axis=1)
    return (similarities > mine).sum(axis=1), (similarities == mine).sum(axis=1) - 1
