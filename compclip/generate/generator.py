"""The interface of a generator kind: a module with ``Settings`` and ``generate``.

``generate(settings, prompts, context) -> Generated`` makes an image for each row of ``prompts``. ``SPLITS`` are the
splits that the kind serves (default: all), ``TABLES`` the tables that it reads (default: ``images``). ``SCENES`` is
True for a kind that returns ``scenes``, ``MODEL`` for a kind that runs a torch model. A kind that reads the user's
files may have ``fingerprint(settings, cache) -> str`` (``core.fingerprint``, whose index is in ``cache``), and
``preview(settings, prompts) -> str``, the message of `make check` about them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from compclip.core.section import Section
from compclip.core.tables import TESTS

KEYS = ["split", "image_id", "caption_id", "draw"]


class Settings(Section):
    """The settings of a kind without settings."""


@dataclass(frozen=True)
class Context:
    """Where a generator reads and writes.

    An image is written to ``folder / file_name``, with the prompt's ``file_name``; its path in the manifest, relative
    to the results folder, is ``f"{place}/{file_name}"``.
    """

    tables: Mapping[str, pd.DataFrame]  # the kind's ``TABLES``, by name
    folder: Path
    place: str
    composition: str
    seed: int
    cache: Path = Path(".cache")
    threads: int = 2


@dataclass(frozen=True)
class Generated:
    """The result of a generator."""

    manifest: pd.DataFrame  # columns of ``tables.MANIFEST``, a row for each prompt
    scenes: pd.DataFrame | None = None  # the drawn scenes, for the oracle
    summary: dict[str, Any] = field(default_factory=dict)  # further entries of ``summary.json``


def serves(kind: ModuleType) -> tuple[str, ...]:
    return getattr(kind, "SPLITS", TESTS)


def reads(kind: ModuleType) -> tuple[str, ...]:
    return getattr(kind, "TABLES", ("images",))


def manifest(prompts: pd.DataFrame, paths: Iterable[str | None], without: str = "missing") -> pd.DataFrame:
    """Return a manifest with ``paths`` in the order of ``prompts``; ``without`` is the status where a path is missing.

    A ``missing`` image counts as wrong; a ``skipped`` prompt, without a matching real image, is not scored.
    """
    result = prompts[KEYS].assign(path=pd.Series(list(paths), index=prompts.index, dtype="str"))
    return result.assign(status=result["path"].notna().map({True: "ok", False: without}))
