"""What a dataset source is: a module with ``Settings`` and ``load``.

``load(settings, *, seed, limit, folder, cache) -> Loaded`` puts image files below ``folder`` and says what it
found. ``limit`` images at most (None: all); ``cache`` keeps downloads between runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Loaded:
    """What a source found.

    captions: columns of ``tables.CAPTIONS``. images: of ``tables.IMAGES``, with ``path`` relative to ``folder``
    (null: no file). tables: further tables of the source by name (``scenes``, ``facts``). summary: counts and
    names of what was left out, for ``dataset.json``.
    """

    captions: pd.DataFrame
    images: pd.DataFrame
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
