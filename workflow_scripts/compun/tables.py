"""The columns of the stage's Parquet artifacts that hold compounds and their images."""

from __future__ import annotations

import pandera.pandas as pa

# What the compound's picture shows of its constituents (the paper's section 6).
KINDS = ("either", "both", "none")
# Of an image: the compound, or the distractor that shows the first or the second noun.
ROLES = ("compound", "n1", "n2")


def _text(*, nullable: bool = False, isin: tuple[str, ...] | None = None) -> pa.Column:
    return pa.Column(str, checks=pa.Check.isin(isin) if isin else None, nullable=nullable)


# first, second: the constituents; n1, n2: the nouns that the distractors show. complete: all three images can be read.
COMPOUNDS = pa.DataFrameSchema(
    {
        "compound": _text(),
        "first": _text(nullable=True),
        "second": _text(nullable=True),
        "kind": _text(nullable=True, isin=KINDS),
        "n1": _text(nullable=True),
        "n2": _text(nullable=True),
        "complete": pa.Column(bool),
    },
    strict=True,
    unique=["compound"],
)

# path is relative to the folder of images; null where the image is missing or cannot be read.
COMPOUND_IMAGES = pa.DataFrameSchema(
    {"compound": _text(), "role": _text(isin=ROLES), "path": _text(nullable=True)},
    strict=True,
    unique=["compound", "role"],
)
