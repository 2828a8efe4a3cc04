"""Where a compound's image stands when all images are candidates, not just its two distractors (the paper's 12 %)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pandera.pandas as pa

# One row a compound, model and prompt. images: the candidates, its own among them; above: those of greater
# similarity; tied: others of the same one.
RETRIEVAL = pa.DataFrameSchema(
    {
        **{name: pa.Column(str) for name in ("compound", "model", "prompt")},
        **{name: pa.Column("int64", checks=pa.Check.ge(0)) for name in ("images", "above", "tied")},
    },
    strict=True,
    unique=["compound", "model", "prompt"],
)


def standings(similarities: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many images beat a compound's own, and how many others tie with it: (n,) each.

    similarities (n, m): of n texts with m different images; own (n,): the column of each text's image. An image that
    serves two compounds must be one column, or it would tie with itself.
    """
    mine = np.take_along_axis(similarities, own[:, None], axis=1)
    return (similarities > mine).sum(axis=1), (similarities == mine).sum(axis=1) - 1


def found(table: pd.DataFrame, k: int = 1) -> np.ndarray:
    """(n,) whether the own image is among the first ``k``; as in the benchmark, a tie is no win."""
    return (table["above"] + table["tied"] < k).to_numpy()
