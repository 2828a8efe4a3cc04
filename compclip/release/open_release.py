"""Read and check a release: a versioned folder with everything that is needed to score a model.

``release.json`` lists the sha256 of every file, so its own digest identifies the release. Paths
below are relative to the folder; ``C`` is a composition, ``J`` a judge and ``G`` a control
generator:

- ``captions.parquet``, ``images.parquet``, the judges' folders;
- ``C/prompts.parquet`` (and ``.jsonl``), ``C/variants.parquet``, ``C/swapped.parquet``,
  ``C/splits.parquet``, ``C/ranking.parquet``, ``C/heldout.json``, ``C/variants.json``,
  ``C/divergence.parquet``, ``C/audit.json``;
- ``C/bias/J.json``, ``C/adjustments/J.json`` and ``C/scores/J/G/``;
- with other judges ``K``: ``C/choices/K.parquet``, ``C/certificates/K.json`` and
  ``C/judges.csv`` (``release.recorded``).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core import tables
from compclip.core.artifacts.heldout import matched_pairs, read_heldout
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import require
from compclip.core.identity.code import PACKAGE, ROOT
from compclip.core.identity.digests import sha256
from compclip.core.identity.installation import version_in
from compclip.divergence.results import read_divergences
from compclip.release.check import RELEASE_FILE, check_files, check_release
from compclip.release.file_models import (
    CONTROLS,
    DOWNLOAD,
    AdjustmentFile,
    Contents,
    JudgeBias,
    ReleasedComposition,
    Summary,
    VariantsFile,
    read_strictly,
)
from compclip.report.scored import Scored, all_scores, scores_of
from compclip.score.bias import BiasCheck
from compclip.score.choices import Adjustment
from compclip.score.entries import set_names
from compclip.score.score_table import Rules, adjective_summary
from compclip.split.evaluation import evaluation_images
from compclip.split.pools import class_names

PART_TABLES = {
    "prompts": tables.PROMPTS,
    "variants": tables.VARIANTS,
    "swapped": tables.SWAPPED,
    "splits": tables.SPLIT,
    "ranking": tables.RANKING,
}


@dataclass(frozen=True)
class Summarized:
    """A generator's scores by a judge: summary, and entries (``tables.SCORES``) by set."""

    summary: dict[str, Any]
    tables: Mapping[str, pd.DataFrame]


class SummaryKey(NamedTuple):
    """What a summary of scores is about."""

    set: str
    split: str
    distractors: str
    prompts: str


@dataclass(frozen=True)
class ReleasedTables:
    """One composition of a release, with its tables."""

    name: str
    release: "Release"
    contents: ReleasedComposition

    @property
    def folder(self) -> Path:
        return self.release.folder / self.name

    # Cached, because each is used by several checks and scores of the same release.
    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {
            name: read_table(self.folder / f"{name}.parquet", schema)
            for name, schema in PART_TABLES.items()
        }

    @cached_property
    def judged(self) -> pd.DataFrame:
        # The images that evaluate: with ``half``, the others have trained the judges.
        settings = self.release.contents
        images = self.release.images
        return evaluation_images(
            self.tables["splits"], images, settings.train_on, settings.judge_half
        )

    @property
    def prompts_digest(self) -> str:
        return self.release.contents.files[f"{self.name}/prompts.parquet"]

    @property
    def rules(self) -> Rules:
        # The number of candidates depends on the composition, all else on the release.
        settings = self.release.contents
        candidates = {"candidates": self.contents.candidates}
        return Rules(
            scoring=settings.scoring.model_copy(update=candidates),
            seed=settings.seed,
            composition=self.name,
            prompts=settings.prompts,
            swapped=self.tables["swapped"],
        )

    @property
    def bias_check(self) -> BiasCheck:
        contents = {}
        # Averaged over judges, as the scores are.
        for judge in self.contents.judges:
            file = self.folder / "bias" / f"{judge}.json"
            contents[judge] = read_strictly(file, JudgeBias, DOWNLOAD).model_dump()
        return BiasCheck(contents, self.release.contents.max_bias)

    @property
    def summaries(self) -> list[SummaryKey]:
        """What each summary of scores is about; test_seen has a second, of the prompts whose
        caption was swapped.
        """
        settings = self.release.contents
        keys = []
        for name, split, distractors in set_names(tables.TESTS, settings.scoring.distractors):
            prompts = "swapped" if split == "test_swapped" else settings.prompts
            keys.append(SummaryKey(name, split, distractors, prompts))
            if split == "test_seen":
                keys.append(SummaryKey(name, split, distractors, "swapped"))
        return keys

    @cached_property
    def matched(self) -> set[str]:
        heldout = read_heldout(self.folder / "heldout.json")
        return matched_pairs(self.tables["ranking"], heldout)

    @cached_property
    def variants(self) -> dict[str, Any]:
        """The counts of ``variants.json``, by split."""
        content = read_strictly(self.folder / "variants.json", VariantsFile, DOWNLOAD)
        return content.model_dump()["splits"]

    @cached_property
    def divergences(self) -> pd.DataFrame:
        return read_divergences(self.folder)

    def adjustment(self, judge: str) -> Adjustment | None:
        """Return how a judge's similarities are adjusted, as chosen on real images."""
        file = self.folder / "adjustments" / f"{judge}.json"
        content = read_strictly(file, AdjustmentFile | None, DOWNLOAD)
        if content is None:
            return None
        # As embeddings are; the file's decimals preserve float32.
        mean = np.array(content.mean, np.float32)
        return Adjustment(mean, content.multiple, content.of_seen)

    def summary(self, judge: str, generator: str | None = None) -> dict[str, Any]:
        """Return ``summary.json`` of a control generator, by default the first, by a judge."""
        # Any control names the judge, so a submission takes the first one's summary.
        generator = generator or self.contents.generators[0]
        file = self.folder / "scores" / judge / generator / "summary.json"
        return read_strictly(file, Summary, DOWNLOAD).model_dump()

    def control(self, judge: str, generator: str) -> Summarized:
        """Return the summary of a control generator by a judge, and its scores by set."""
        folder = self.folder / "scores" / judge / generator
        scores = self.summary(judge, generator)["scores"]
        controls = {}
        for score in scores:
            key = SummaryKey(*map(score.get, SummaryKey._fields))
            controls[key] = score
        # A generator may not serve all splits, but what it has must be in order, each key once.
        served = [key for key in self.summaries if key in controls]
        # A set that is there twice, or that the release does not score, fails as well.
        is_complete = served == [*controls] and len(controls) == len(scores)
        require(served and is_complete, folder, "other sets than the release scores", DOWNLOAD)
        score_tables = {
            key.set: read_table(folder / f"{key.set}.parquet", tables.SCORES) for key in served
        }
        summary = self.scored(generator, judge, score_tables, controls)
        return Summarized(summary, score_tables)

    def scored(
        self,
        generator: str,
        judge: str,
        score_tables: Mapping[str, pd.DataFrame],
        controls: Mapping[SummaryKey, Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Return the summary of a generator's scores by a judge: what is computed wins over what is
        told.

        Args:
            score_tables: its entries (``tables.SCORES``) by set.
            controls: those of each summary, which only its images determine.
        """
        settings = self.release.contents
        scores = []
        for key, values in controls.items():
            # What follows from the entries is computed again, and not read from the summary.
            entries = score_tables[key.set]
            entries = entries[~tables.is_further(entries)]
            if key.split == "test_seen" and key.prompts == "swapped":
                swapped = self.tables["swapped"]
                entries = entries[tables.are_among(entries, swapped, tables.CAPTION_KEY)]
            score = {name: values[name] for name in CONTROLS}
            score |= key._asdict()
            score["judged"] = len(entries)
            score |= adjective_summary(entries)
            scores.append(score)
        # From the summary of a control are only the judge's name and the rule for classes.
        summary = self.summary(judge)
        summary |= {"dataset": settings.dataset, "composition": self.name}
        summary |= {"generator": generator, "scores": scores}
        summary["judge_hash"] = self.contents.judges[judge].hash
        summary["candidates"] = self.contents.candidates
        summary["seed"] = settings.seed
        summary["chunking"] = settings.scoring.chunking
        return summary

    def of_judges(self, by_judge: Mapping[str, Summarized]) -> list[Scored]:
        """Return a generator's scores."""
        # ``exclusive`` decides which swapped prompts count in what is composed.
        swapped = self.tables["swapped"][[*tables.CAPTION_KEY, "exclusive"]]
        # Images of a class are resampled together.
        classes = self.release.classes
        return all_scores(
            {
                judge: scores_of(scores.summary, scores.tables, swapped, classes, self.matched)
                for judge, scores in by_judge.items()
            }
        )

    @cached_property
    def summarized(self) -> dict[str, dict[str, Summarized]]:
        """The scores of each control generator by each judge."""
        result = {}
        for generator in self.contents.generators:
            by_judge = {judge: self.control(judge, generator) for judge in self.contents.judges}
            result[generator] = by_judge
        return result

    @cached_property
    def controls(self) -> list[Scored]:
        """The scores of the control generators."""
        result = []
        for by_judge in self.summarized.values():
            result += self.of_judges(by_judge)
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
    def parts(self) -> dict[str, ReleasedTables]:
        return {
            name: ReleasedTables(name, self, contents)
            for name, contents in self.contents.compositions.items()
        }

    def part(self, composition: str) -> ReleasedTables:
        """Return one composition; UserError if the release does not have it."""
        fault = f"no composition {composition!r}"
        remedy = f"choose one of {', '.join(self.parts)}"
        require(composition in self.parts, self.folder, fault, remedy)
        return self.parts[composition]


def package_version(name: str) -> str:
    """Return the version of a package, or of a checkout of compclip that is not installed."""
    if name == PACKAGE:
        return version_in(ROOT)
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
    fault = f"no {RELEASE_FILE}, so it is not a release"
    require(os.path.isfile(file), folder, fault, "give the folder of a release")
    contents = read_strictly(file, Contents, DOWNLOAD, "release")
    # Files before tables, so that nothing is parsed that the release does not list.
    check_files(folder, contents)
    release = Release(folder, contents, sha256(file))
    check_release(release)
    return release
