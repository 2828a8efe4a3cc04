"""The interface of a generator kind: a module of ``generators/`` that defines the fields of
``Kind``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from compclip.core.settings import plugins
from compclip.core.settings.section import Section
from compclip.core.tables import TESTS

if TYPE_CHECKING:
    import pandas as pd

GENERATOR_KINDS = "compclip.generate.generators"
MANIFEST_NAME = "manifest.jsonl"  # in a folder of images, the texts from which they were made
PROMPT_KEYS = ["split", "image_id", "caption_id", "draw"]


TrainingData = Literal["split", "other", "unknown"]


class Settings(Section):
    """The settings of a kind without settings."""


@dataclass(frozen=True)
class Context:
    """Where a generator reads and writes.

    An image is written to ``folder / file_name``, with the prompt's ``file_name``; its path in the
    manifest, relative to the results folder, is ``f"{place}/{file_name}"``.
    """

    tables: Mapping[str, pd.DataFrame]  # the kind's ``TABLES``, by name
    folder: Path
    place: str
    composition: str
    seed: int
    cache: Path = Path(".cache")
    threads: int = 2
    # to which the paths of ``images``, the real images, are relative
    results: Path = Path("results")


@dataclass(frozen=True)
class Generated:
    """The result of a generator."""

    manifest: pd.DataFrame  # columns of ``tables.MANIFEST``, a row for each prompt
    scenes: pd.DataFrame | None = None  # the drawn scenes, for the oracle
    summary: dict[str, Any] = field(default_factory=dict)  # further entries of ``summary.json``


class Kind(plugins.Interface):
    """What a generator kind defines; ``Settings`` are those of an entry of
    ``generate.generators``.
    """

    # (settings, prompts, context): an image for each row of prompts
    generate: Callable[..., Generated]
    ABOUT: str = ""  # on the page
    # that it serves; a generator of no split would make no image
    SPLITS: tuple[Literal["test_seen", "test_unseen", "test_swapped"], ...] = Field(
        TESTS,  # type: ignore[arg-type]
        min_length=1,
    )
    TABLES: tuple[str, ...] = ("images",)  # that it reads
    SCENES: bool = False  # whether it returns scenes
    # whether its images are those of the data set, unchanged, whose scenes may be known
    REAL_IMAGES: bool = False
    MODEL: bool = False  # whether it runs a torch model
    TRAINING_DATA: TrainingData = "split"  # what it was trained on, unless the config says
    # (settings, cache): of the user's files that it reads, by core.identity.fingerprint, whose
    # index is in cache
    fingerprint: Callable[..., str] | None = None
    # (settings, prompts): the message of `make check` about these files
    preview: Callable[..., str] | None = None


@cache
def load_kind(name: str) -> Kind:
    """Return a generator kind by its name; raises UserError if there is none, or its module is
    faulty.
    """
    return Kind.of(plugins.load(GENERATOR_KINDS, name))


def manifest(
    prompts: pd.DataFrame, paths: Iterable[str | None], without: str = "missing"
) -> pd.DataFrame:
    """Return a manifest with ``paths`` in the order of ``prompts``; ``without`` is the status where
    a path is missing.

    A ``missing`` image counts as wrong; a ``skipped`` prompt, without a matching real image, is not
    scored.
    """
    import pandas as pd

    path = pd.Series(list(paths), index=prompts.index, dtype="str")
    status = path.notna().map({True: "ok", False: without})
    return prompts[PROMPT_KEYS].assign(path=path, status=status)
