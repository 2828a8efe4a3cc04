"""What a dataset source is: a module with ``Settings`` and ``load``.

``load(settings, *, seed, limit, folder, cache) -> Loaded`` puts image files below ``folder`` and says what it
found. ``limit`` images at most (None: all); ``cache`` keeps downloads between runs. Where it makes further tables
it names them in ``TABLES``; where it reads files of the user's it may have ``fingerprint(settings) -> str``, a text
that changes when they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from workflow_scripts.core import seeds

NAMES = 100


@dataclass(frozen=True)
class Loaded:
    """What a source found.

    captions: columns of ``tables.CAPTIONS``. images: ``image_id``, ``path`` relative to ``folder`` (null: no file),
    and, where there are boxes, ``bbox_x``, ``bbox_y``, ``bbox_w``, ``bbox_h`` in pixels; sizes are measured by
    ``load_dataset``. tables: further tables of the source by name (``scenes``, ``facts``). summary: counts and names
    of what was left out, for ``dataset.json``.
    """

    captions: pd.DataFrame
    images: pd.DataFrame
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)


def named(names: Sequence[str]) -> dict[str, Any]:
    """How many there are, and the first hundred, for a summary."""
    return {"count": len(names), "names": list(names[:NAMES])}


def clean(texts: pd.Series) -> pd.Series:
    """Captions as they stand in captions.parquet: on one line, since several exports have a caption a line."""
    return texts.str.replace(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", regex=True).str.strip()


def spread(images: pd.DataFrame, limit: int | None, seed: int) -> set[str]:
    """The ids of at most ``limit`` images, as evenly over the classes as can be; all where it is None.

    images: image_id, class_id (null: no class). A larger limit with the same seed contains a smaller one.
    """
    ids = images.sort_values("image_id")
    if limit is None or limit >= len(ids):
        return set(ids["image_id"])
    order = ids.iloc[seeds.rng(seed, "dataset", "limit").permutation(len(ids))]
    turn = order.groupby(order["class_id"].fillna("")).cumcount()
    # Stable: within a turn, the classes come in the order of the permutation.
    return set(order.loc[turn.sort_values(kind="stable").index[:limit], "image_id"])
