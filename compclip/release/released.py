"""Read and check a release: a versioned folder with everything that is needed to score a model.

``release.json`` lists the sha256 of every file, so its own digest identifies the release. Paths
below are relative to the folder; ``C`` is a composition, ``J`` a judge and ``G`` a control
generator:

- ``captions.parquet``, ``images.parquet``, the judges' folders;
- ``C/prompts.parquet`` (and ``.jsonl``), ``C/variants.parquet``, ``C/swapped.parquet``,
  ``C/splits.parquet``, ``C/ranking.parquet``, ``C/heldout.json``, ``C/variants.json``,
  ``C/divergence.parquet``, ``C/audit.json``;
- ``C/health/J.json``, ``C/adjustments/J.json`` and ``C/scores/J/G/``.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core import tables
from compclip.core.code import PACKAGE, ROOT
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.heldout import matched_pairs, read_heldout
from compclip.divergence.results import read_divergences
from compclip.io import read_table
from compclip.release.check import RELEASE_FILE, check_files, check_release
from compclip.release.models import (
    CONTROLS,
    DOWNLOAD,
    AdjustmentFile,
    Contents,
    JudgeHealth,
    ReleasedComposition,
    Summary,
    VariantsFile,
    read_strictly,
)
from compclip.report.table import Scored, all_scores, scores_of
from compclip.score.choices import Adjustment
from compclip.score.entries import set_names
from compclip.score.health import Health
from compclip.score.scores import Rules, adjective_summary
from compclip.split.judged import judged_images
from compclip.split.pools import class_names

PART_TABLES = {
    "prompts": tables.PROMPTS,
    "variants": tables.VARIANTS,
    "swapped": tables.SWAPPED,
    "splits": tables.SPLIT,
    "ranking": tables.RANKING,
}


# The summary of a generator's scores by a judge, and its entries (``tables.SCORES``) by set.
Summarized = tuple[dict[str, Any], Mapping[str, pd.DataFrame]]


class SummaryKey(NamedTuple):
    """What a summary of scores is about."""

    set: str
    split: str
    distractors: str
    prompts: str


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
        return {
            name: read_table(self.folder / f"{name}.parquet", schema)
            for name, schema in PART_TABLES.items()
        }

    @cached_property
    def judged(self) -> pd.DataFrame:
        about = self.release.contents
        return judged_images(
            self.tables["splits"], self.release.images, about.train_on, about.halves
        )

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
        files = {name: self.folder / "health" / f"{name}.json" for name in self.about.judges}
        content = {
            name: read_strictly(file, JudgeHealth, DOWNLOAD).model_dump()
            for name, file in files.items()
        }
        return Health(content, self.release.contents.health)

    @property
    def summaries(self) -> list[SummaryKey]:
        """What each summary of scores is about; test_seen has a second, of the prompts whose
        caption was swapped.
        """
        contents = self.release.contents
        sets = set_names(tables.TESTS, contents.scoring.distractors)
        keys = [
            SummaryKey(*of, "swapped" if of[1] == "test_swapped" else contents.prompts)
            for of in sets
        ]
        return sum(
            (
                [key, key._replace(prompts="swapped")] if key.split == "test_seen" else [key]
                for key in keys
            ),
            [],
        )

    @cached_property
    def matched(self) -> set[str]:
        return matched_pairs(self.tables["ranking"], read_heldout(self.folder / "heldout.json"))

    @cached_property
    def variants(self) -> dict[str, Any]:
        """The counts of ``variants.json``, by split."""
        return read_strictly(self.folder / "variants.json", VariantsFile, DOWNLOAD).model_dump()[
            "splits"
        ]

    @cached_property
    def divergences(self) -> pd.DataFrame:
        return read_divergences(self.folder)

    def adjustment(self, judge: str) -> Adjustment | None:
        """Return how a judge's similarities are adjusted, as chosen on real images."""
        file = self.folder / "adjustments" / f"{judge}.json"
        content = read_strictly(file, AdjustmentFile | None, DOWNLOAD)
        return content and Adjustment(
            np.array(content.mean, np.float32), content.multiple, content.of_seen
        )

    def summary(self, judge: str, generator: str | None = None) -> dict[str, Any]:
        """Return ``summary.json`` of a control generator, by default the first, by a judge."""
        file = (
            self.folder
            / "scores"
            / judge
            / (generator or self.about.generators[0])
            / "summary.json"
        )
        return read_strictly(file, Summary, DOWNLOAD).model_dump()

    def control(self, judge: str, generator: str) -> Summarized:
        """Return the summary of a control generator by a judge, and its scores by set."""
        folder = self.folder / "scores" / judge / generator
        scores = self.summary(judge, generator)["scores"]
        told = {SummaryKey(*map(of.get, SummaryKey._fields)): of for of in scores}
        served = [key for key in self.summaries if key in told]
        is_complete = served == [*told] and len(told) == len(scores)
        require(served and is_complete, folder, "other sets than the release scores", DOWNLOAD)
        of_sets = {
            key.set: read_table(folder / f"{key.set}.parquet", tables.SCORES) for key in served
        }
        return self.scored(generator, judge, of_sets, told), of_sets

    def scored(
        self,
        generator: str,
        judge: str,
        of_sets: Mapping[str, pd.DataFrame],
        told: Mapping[SummaryKey, Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Return the summary of a generator's scores by a judge: what is computed wins over what is
        told.

        Args:
            of_sets: its entries (``tables.SCORES``) by set.
            told: the controls of each summary, which only its images determine.
        """
        contents = self.release.contents
        scores = []
        for key, of in told.items():
            entries = of_sets[key.set][~tables.is_further(of_sets[key.set])]
            if key.split == "test_seen" and key.prompts == "swapped":
                entries = entries[
                    tables.are_among(entries, self.tables["swapped"], tables.CAPTION_KEY)
                ]
            controls = {name: of[name] for name in CONTROLS}
            scores.append(
                {**controls, **key._asdict(), "judged": len(entries), **adjective_summary(entries)}
            )
        # From the summary of a control are only the judge's name and the rule for classes.
        return self.summary(judge) | {
            "dataset": contents.dataset,
            "composition": self.name,
            "generator": generator,
            "scores": scores,
            "judge_hash": self.about.judges[judge].hash,
            "candidates": self.about.candidates,
            "seed": contents.seed,
            "chunking": contents.scoring.chunking,
        }

    def of_judges(self, by_judge: Mapping[str, Summarized]) -> list[Scored]:
        """Return a generator's scores."""
        swapped = self.tables["swapped"][[*tables.CAPTION_KEY, "exclusive"]]
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
            result += self.of_judges(
                {judge: self.control(judge, generator) for judge in self.about.judges}
            )
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
        return {
            name: ReleasePart(name, self, about)
            for name, about in self.contents.compositions.items()
        }

    def part(self, composition: str) -> ReleasePart:
        """Return one composition; UserError if the release does not have it."""
        allowed = ", ".join(self.parts)
        require(
            composition in self.parts,
            self.folder,
            f"no composition {composition!r}",
            f"choose one of {allowed}",
        )
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


def open_release(folder: str | Path) -> Release:
    """Open a release and check everything in it.

    Raises:
        UserError: the folder is not a release; its files are not those that it lists, by name and
            sha256; a file is not a plain file, would take too much memory, does not fit its model
            or schema, or contradicts another file.
    """
    folder = Path(folder)
    file = folder / RELEASE_FILE
    require(
        os.path.isfile(file),
        folder,
        f"no {RELEASE_FILE}, so it is not a release",
        "give the folder of a release",
    )
    contents = read_strictly(file, Contents, DOWNLOAD, "release")
    check_files(folder, contents)
    release = Release(folder, contents, sha256(file))
    check_release(release)
    return release
