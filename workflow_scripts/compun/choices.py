"""What a model answered: which of a compound's three images it chose (``tables.CHOICES``)."""

from __future__ import annotations

import pandas as pd


def is_tied(choices: pd.DataFrame) -> pd.Series:
    """(n,) answers that are not right because the compound's image and a distractor share the greatest similarity."""
    rival = choices[["similarity_n1", "similarity_n2"]].max(axis=1)
    return (choices["similarity_compound"] == rival) & ~choices["right"]
