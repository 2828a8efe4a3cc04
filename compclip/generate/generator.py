"""The interface of a generator kind: a module with ``Settings`` and ``generate``.

``generate(settings, prompts, context) -> Generated`` makes an image for each row of ``prompts``. ``SPLITS`` are those
that the kind serves (default: all), ``TABLES`` the tables that it reads (default: ``images``). ``SCENES`` is True for a
kind that gives ``scenes``, ``MODEL`` for one that runs a torch model. A kind that reads the user's files may have
``fingerprint(settings, cache) -> str``, a text that changes when they do (``core.fingerprint``, whose index is in
``cache``), and ``preview(settings, prompts) -> str``, what `make check` says of them.
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
    """The settings of a kind that has none."""


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
    """What a generator gives."""

    manifest: pd.DataFrame  # columns of ``tables.MANIFEST``, a row for each prompt
    scenes: pd.DataFrame | None = None  # what was drawn, for the oracle
    summary: dict[str, Any] = field(default_factory=dict)  # further entries of ``summary.json``


def serves(kind: ModuleType) -> tuple[str, ...]:
    return getattr(kind, "SPLITS", TESTS)


def reads(kind: ModuleType) -> tuple[str, ...]:
    return getattr(kind, "TABLES", ("images",))


def manifest(prompts: pd.DataFrame, paths: Iterable[str | None], without: str = "missing") -> pd.DataFrame:
    """Return a manifest with ``paths`` in the order of ``prompts``; ``without`` is the status of a prompt without one.

    A ``missing`` image counts as wrong; ``skipped`` says that no real image fits the prompt, which is not scored.
    """
    result = prompts[KEYS].assign(path=pd.Series(list(paths), index=prompts.index, dtype="str"))
    return result.assign(status=result["path"].notna().map({True: "ok", False: without}))
