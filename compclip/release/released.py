"""Read and check a release: a versioned folder with everything that is needed to score a model.

``release.json`` lists the sha256 of every file, so its own digest identifies the release. Paths below are relative to
the folder; ``C`` is a composition, ``J`` a judge and ``G`` a control generator:

- ``captions.parquet``, ``images.parquet``, the judges' folders;
- ``C/prompts.parquet`` (and ``.jsonl``), ``C/variants.parquet``, ``C/swapped.parquet``, ``C/splits.parquet``,
  ``C/ranking.parquet``, ``C/heldout.json``, ``C/variants.json``, ``C/divergence.parquet``, ``C/audit.json``;
- ``C/health/J.json``, ``C/adjustments/J.json`` and ``C/scores/J/G/``.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, ValidationError

from compclip.core import tables
from compclip.core.code import PACKAGE, ROOT
from compclip.core.digests import sha256
from compclip.core.errors import UserError, require
from compclip.core.heldout import matched_pairs, read_heldout
from compclip.core.section import Section
from compclip.io import read_json, read_table
from compclip.report.table import Scored, all_scores, read_score_folder, scores_of
from compclip.score.choices import Adjustment
from compclip.score.config import Scoring
from compclip.score.health import Health
from compclip.score.scores import Rules
from compclip.split.judged import judged_images
from compclip.split.pools import class_names

RELEASE_FILE = "release.json"
Described = TypeVar("Described", bound=BaseModel)
SCHEMA_VERSION = 1
PART_TABLES = {
    "prompts": tables.PROMPTS, "variants": tables.VARIANTS, "swapped": tables.SWAPPED, "splits": tables.SPLIT,
    "ranking": tables.RANKING,
}  # fmt: skip


class ReleasedJudge(Section):
    """The location of a judge. Kinds other than two towers need a newer compclip."""

    kind: Literal["two_towers"] = "two_towers"
    folder: str
    hash: str


class ReleasedComposition(Section):
    """A composition's judges by name, control generators, and reference and habit of each held-out split."""

    candidates: int
    judges: dict[str, ReleasedJudge] = Field(min_length=1)
    generators: list[str]
    anchors: dict[str, tuple[str | None, str | None]]


class Contents(Section):
    """The content of ``release.json``."""

    schema_version: Literal[1] = 1
    name: str
    version: str
    license: str
    compclip: str
    dataset: str
    compositions: dict[str, ReleasedComposition]
    reference: str | None
    scoring: Scoring
    seed: int
    halves: int
    train_on: str
    prompts: str
    health: float
    batch: int
    threads: int
    files: dict[str, str]


@dataclass(frozen=True)
class ReleasePart:
    """One composition of a release, with its tables."""

    name: str
    release: "Release"
    about: ReleasedComposition

    @property
    def folder(self) -> Path:
        return self.release.folder / self.name

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {name: read_table(self.folder / f"{name}.parquet", schema) for name, schema in PART_TABLES.items()}

    @cached_property
    def judged(self) -> pd.DataFrame:
        about = self.release.contents
        return judged_images(self.tables["splits"], self.release.images, about.train_on, about.halves)

    @property
    def prompts_digest(self) -> str:
        return self.release.contents.files[f"{self.name}/prompts.parquet"]

    @property
    def rules(self) -> Rules:
        about, classes = self.release.contents, self.release.classes
        scoring = about.scoring.model_copy(update={"candidates": self.about.candidates})
        return Rules(scoring, classes, about.seed, self.name, about.prompts, self.tables["swapped"])

    @property
    def health(self) -> Health:
        content = {name: read_json(self.folder / "health" / f"{name}.json") for name in self.about.judges}
        return Health(content, self.release.contents.health)

    @cached_property
    def matched(self) -> set[str]:
        return matched_pairs(self.tables["ranking"], read_heldout(self.folder / "heldout.json"))

    def adjustment(self, judge: str) -> Adjustment | None:
        """Return how a judge's similarities are adjusted, as chosen on real images."""
        content = read_json(self.folder / "adjustments" / f"{judge}.json")
        return content and Adjustment(np.array(content["mean"], np.float32), content["multiple"], content["of_seen"])

    def summary(self, judge: str) -> dict[str, Any]:
        """Return ``summary.json`` of the first control generator by a judge."""
        return read_json(self.folder / "scores" / judge / self.about.generators[0] / "summary.json")

    def of_judges(self, by_judge: Mapping[str, tuple[dict[str, Any], dict[str, pd.DataFrame]]]) -> list[Scored]:
        """Return a generator's scores. ``by_judge``: the summary, and the entries of each set."""
        swapped = self.tables["swapped"][tables.CAPTION_KEY]
        return all_scores(
            {
                judge: scores_of(summary, of_sets, swapped, self.release.classes, self.matched)
                for judge, (summary, of_sets) in by_judge.items()
            }
        )

    @cached_property
    def controls(self) -> list[Scored]:
        """The scores of the control generators."""
        result = []
        for generator in self.about.generators:
            folders = {judge: self.folder / "scores" / judge / generator for judge in self.about.judges}
            result += self.of_judges({judge: read_score_folder(folder) for judge, folder in folders.items()})
        return result


@dataclass(frozen=True)
class Release:
    """An opened release."""

    folder: Path
    contents: Contents
    digest: str  # of release.json

    @property
    def title(self) -> str:
        return f"{self.contents.name} {self.contents.version}"

    @cached_property
    def captions(self) -> pd.DataFrame:
        return read_table(self.folder / "captions.parquet", tables.CAPTIONS)

    @cached_property
    def images(self) -> pd.DataFrame:
        return read_table(self.folder / "images.parquet", tables.IMAGES)

    @cached_property
    def classes(self) -> pd.Series:
        return class_names(self.captions)

    @cached_property
    def parts(self) -> dict[str, ReleasePart]:
        return {name: ReleasePart(name, self, about) for name, about in self.contents.compositions.items()}

    def part(self, composition: str) -> ReleasePart:
        """Return one composition; UserError if the release does not have it."""
        allowed = ", ".join(self.parts)
        require(composition in self.parts, self.folder, f"no composition {composition!r}", f"choose one of {allowed}")
        return self.parts[composition]


def package_version(name: str) -> str:
    """Return the version of a package, or of a checkout of compclip that is not installed."""
    project = ROOT / "pyproject.toml"
    if name == PACKAGE and project.is_file():
        return tomllib.loads(project.read_text())["project"]["version"]
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def read_described(file: Path, kind: str, model: type[Described], remedy: str) -> Described:
    """Read a JSON file of a ``kind`` as a pydantic model.

    Raises:
        UserError: its schema version differs from this code's, or it does not fit the model; names the first fault.
    """
    content = read_json(file)
    given = content.get("schema_version") if isinstance(content, dict) else None
    fault = f"version {given!r} of the schema of a {kind}, expected {SCHEMA_VERSION}"
    require(given == SCHEMA_VERSION, file, fault, f"use the compclip that wrote it, or correct the path of the {kind}")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        fault = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        raise UserError(f"{file}: {fault}; {remedy}") from None


def open_release(folder: str | Path) -> Release:
    """Open a release and check every file that it lists.

    Raises:
        UserError: the folder is not a release, or a file differs from its sha256 or is missing.
    """
    folder = Path(folder)
    file = folder / RELEASE_FILE
    require(file.is_file(), folder, f"no {RELEASE_FILE}, so it is not a release", "give the folder of a release")
    contents = read_described(file, "release", Contents, "download the release again")
    for name, expected in contents.files.items():
        actual = sha256(folder / name)
        fault = "missing" if not actual else f"damaged: its sha256 is not that of {RELEASE_FILE}"
        require(actual == expected, folder / name, fault, "download the release again")
    return Release(folder, contents, sha256(file))
