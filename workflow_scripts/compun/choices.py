"""Which of a compound's three images a model chose (``tables.CHOICES``)."""

import pandas as pd


def is_tied(choices: pd.DataFrame) -> pd.Series:
    """Return which answers (n,) are wrong because the compound's image ties with a distractor."""
    rival = choices[["similarity_n1", "similarity_n2"]].max(axis=1)
    return (choices["similarity_compound"] == rival) & ~choices["right"]
