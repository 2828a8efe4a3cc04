"""What a generator is: a module with ``Settings``, ``SPLITS`` (those it serves) and ``generate``.

``generate(settings, prompts, context) -> Generated`` makes an image for each row of ``prompts``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Context:
    """Where a generator reads and writes.

    ``tables`` maps names (captions, images, pairs, splits, swapped, and for sketches scenes, facts) to Parquet
    files. Images are written to ``folder / file_name``, ``file_name`` being the prompt's; in the manifest such
    an image's path is ``f"{place}/{file_name}"``, relative to the results folder.
    """

    results: Path
    tables: dict[str, Path]
    folder: Path
    place: str
    composition: str
    seed: int


@dataclass(frozen=True)
class Generated:
    """manifest: columns of ``tables.MANIFEST``, a row for each prompt. scenes: what was drawn, for the oracle."""

    manifest: pd.DataFrame
    scenes: pd.DataFrame | None = None
