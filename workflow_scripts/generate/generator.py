"""What a generator is: a module with ``Settings``, ``SPLITS`` (those it serves) and ``generate``.

``generate(settings, prompts, context) -> Generated`` makes an image for each row of ``prompts``. ``TABLES`` names the
tables that it reads (``images`` alone where it is missing); ``SCENES`` is True where it gives ``scenes``, ``MODEL``
where it runs a model by torch; a module that reads files of the user's may have ``fingerprint(settings) -> str``, a
text that changes when they do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

KEYS = ["split", "image_id", "caption_id", "draw"]


@dataclass(frozen=True)
class Context:
    """Where a generator reads and writes.

    ``tables`` maps names (captions, images, pairs, splits, swapped, and for sketches scenes, facts) to Parquet
    files, those of the module's ``TABLES``. Images are written to ``folder / file_name``, ``file_name`` being the
    prompt's; in the manifest such an image's path is ``f"{place}/{file_name}"``, relative to the results folder.
    ``cache`` keeps what was made between runs; ``threads`` are torch's.
    """

    tables: dict[str, Path]
    folder: Path
    place: str
    composition: str
    seed: int
    cache: Path = Path(".cache")
    threads: int = 2


@dataclass(frozen=True)
class Generated:
    """manifest: columns of ``tables.MANIFEST``, a row for each prompt. scenes: what was drawn, for the oracle.

    summary: what else there is to say, for ``summary.json``.
    """

    manifest: pd.DataFrame
    scenes: pd.DataFrame | None = None
    summary: dict[str, Any] = field(default_factory=dict)


def reads(kind: ModuleType) -> tuple[str, ...]:
    """The names of the tables that a generator's module reads."""
    return getattr(kind, "TABLES", ("images",))


def manifest(prompts: pd.DataFrame, paths: Iterable[str | None], otherwise: str = "missing") -> pd.DataFrame:
    """A manifest with ``paths`` in the order of ``prompts``; the status is ``otherwise`` where there is none."""
    result = prompts[KEYS].assign(path=pd.Series(list(paths), index=prompts.index, dtype="str"))
    return result.assign(status=result["path"].notna().map({True: "ok", False: otherwise}))
