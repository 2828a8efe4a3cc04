"""What a model answered: which of a compound's three images it chose."""

from __future__ import annotations

import pandas as pd
import pandera.pandas as pa

from workflow_scripts.compun.tables import ROLES

# One row a compound, model and prompt. right: the compound's image beats both others; a tie is no win.
CHOICES = pa.DataFrameSchema(
    {
        **{name: pa.Column(str) for name in ("compound", "model", "prompt")},
        **{f"similarity_{role}": pa.Column(float) for role in ROLES},
        "answer": pa.Column(str, checks=pa.Check.isin(ROLES)),
        "right": pa.Column(bool),
    },
    strict=True,
    unique=["compound", "model", "prompt"],
)


def is_tied(choices: pd.DataFrame) -> pd.Series:
    """(n,) answers that are not right because the compound's image and a distractor share the greatest similarity."""
    rival = choices[["similarity_n1", "similarity_n2"]].max(axis=1)
    return (choices["similarity_compound"] == rival) & ~choices["right"]
