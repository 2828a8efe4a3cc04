"""A submission: the scores of one model on a release, and the values from which they follow.

``values`` has a list for each measured column of ``tables.SCORES``, in the order of a split's prompts; all other
columns and all estimates (``scores``, rows of ``scores.parquet``) follow from these lists and the release.
"""

import platform
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from compclip.core.errors import require
from compclip.core.rounding import json_values
from compclip.core.section import NAME, Section
from compclip.core.tables import SCORES, TESTS
from compclip.divergence.results import read_divergences
from compclip.io import read_json
from compclip.release.released import Release, ReleasePart, package_version, read_described
from compclip.report.make_table import make_table
from compclip.report.table import Scored
from compclip.score.choices import variants_of_entries
from compclip.score.entries import ENTRY, set_names
from compclip.score.scores import SetScores, adjective_summary
from compclip.stats import balance

MEASURED = ("similarity", "p_beaten", "p_tied", "expected_top1", "hit", "adjective_first", "adjusted_first")
CONTROLS = ("blind_control", "hubness")
DECIDING_PACKAGES = ("compclip", "numpy", "open_clip_torch", "pillow", "torch")
JudgeWeights = Literal["none", "guided", "re-ranked"]
MeasuredValues = dict[str, list[float | bool | None]]


class ReleaseId(Section):
    """The scored release; digest: the sha256 of its release.json."""

    name: str
    version: str
    digest: str


class SubmittedScores(Section):
    """The scores by one judge, by set, and the controls that need the images, by set and prompts."""

    hash: str
    values: dict[str, MeasuredValues]
    controls: dict[str, dict[str, float | None]]


class SubmittedComposition(Section):
    """The scores of one composition.

    Args:
        prompts: sha256 of prompts.parquet.
        images: by file_name, the sha256 of the image, ``missing`` or ``unreadable``.
    """

    prompts: str
    images: dict[str, Annotated[str, Field(pattern="^([0-9a-f]{64}|missing|unreadable)$")]]
    judges: dict[str, SubmittedScores]


class Submission(Section):
    """The content of ``submission.json``."""

    schema_version: Literal[1] = 1
    name: str = Field(pattern=NAME)
    judge_weights: JudgeWeights
    release: ReleaseId
    environment: dict[str, str]
    compositions: dict[str, SubmittedComposition]
    scores: list[dict[str, Any]]


def environment() -> dict[str, str]:
    """Return the processor, as reported by Linux, and the versions of packages: both affect embeddings' rounding."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    about = {"machine": platform.machine(), "processor": next(models, platform.processor())}
    return about | {name: package_version(name) for name in DECIDING_PACKAGES}


def read_submission(file: Path, release: Release) -> Submission:
    """Read a submission for this release; UserError if it is damaged, or for a different release or judges."""
    submission = read_described(file, "submission", Submission, "submit again")
    of = submission.release
    fault = f"is for release {of.name} {of.version} ({of.digest[:12]}), not {release.title} ({release.digest[:12]})"
    own = ReleaseId(name=release.contents.name, version=release.contents.version, digest=release.digest)
    require(of == own, file, fault, "give the release that was scored, or submit again")
    require([*submission.compositions] == [*release.parts], file, "other compositions than the release", "submit again")
    for name, part in release.parts.items():
        _check_part(file, name, submission.compositions[name], part)
    return submission


def _check_part(file: Path, name: str, of: SubmittedComposition, part: ReleasePart) -> None:
    """Raise UserError unless prompts, judges and the number of values are those of the release."""
    where = f"{file}: {name}"
    require(of.prompts == part.prompts_digest, where, "prompts differ from those of the release", "submit again")
    hashes = {judge: about.hash for judge, about in part.about.judges.items()}
    given = {judge: scores.hash for judge, scores in of.judges.items()}
    require(given == hashes, where, f"judges {given} are not those of the release, {hashes}", "submit again")
    names = set(part.tables["prompts"]["file_name"])
    fault = f"images of {len(of.images)} prompts, expected {len(names)}: a missing image counts as wrong"
    require(set(of.images) == names, where, fault, "submit again")
    sets = {each: split for each, split, _ in sets_of(part)}
    for judge, scores in of.judges.items():
        by_judge = f"{where}: judge {judge}"
        require([*scores.values] == [*sets], by_judge, f"sets {', '.join(scores.values)}, expected {', '.join(sets)}")
        for each, split in sets.items():
            check_values(f"{by_judge}: {each}", scores.values[each], prompts_of(part, split), of.images)


def check_values(where: str, values: MeasuredValues, prompts: pd.DataFrame, images: Mapping[str, str]) -> None:
    """Raise UserError unless all values are in range, missing images count as wrong, and chances are consistent."""
    require([*values] == [*MEASURED], where, f"columns {', '.join(values)}, expected {', '.join(MEASURED)}")
    for name, column in values.items():
        fault = f"{name}: {len(column)} values for {len(prompts)} prompts: a missing image counts as wrong"
        require(len(column) == len(prompts), where, fault, "submit again")
    table = pd.DataFrame(values, index=prompts["file_name"])
    failed = table.index.map(images).isin(("missing", "unreadable"))
    counted = table["similarity"].notna() | (table["expected_top1"] != 0)
    counted |= (table[["hit", "adjective_first", "adjusted_first"]].fillna(0) != 0).any(axis=1)
    for rows, fault in (
        (failed & counted, "has no image but counts as scored"),
        (~failed & table["similarity"].isna(), "has an image but no similarity"),
    ):
        require(not rows.any(), where, f"{next(iter(table.index[rows]), '')} {fault}", "submit again")


def sets_of(part: ReleasePart) -> list[tuple[str, str, str]]:
    """Return name, split and distractors of each scored set."""
    return list(set_names(TESTS, part.release.contents.scoring.distractors))


def prompts_of(part: ReleasePart, split: str) -> pd.DataFrame:
    """Return the prompts of a split in the order of values."""
    prompts = part.tables["prompts"]
    return prompts[prompts["split"] == split].sort_values(ENTRY, ignore_index=True)


def submitted_scores(judge_hash: str, scored: Mapping[str, SetScores]) -> SubmittedScores:
    """Return the scores by one judge in the form of a submission."""
    controls = {
        f"{summary['set']} {summary['prompts']}": {name: summary.get(name) for name in CONTROLS}
        for of in scored.values()
        for summary in of.summaries
    }
    values = {name: json_values(of.table[[*MEASURED]].to_dict("list")) for name, of in scored.items()}
    return SubmittedScores(hash=judge_hash, values=values, controls=controls)


def score_frame(part: ReleasePart, split: str, values: MeasuredValues) -> pd.DataFrame:
    """Return ``tables.SCORES`` of a set, from its values and the release."""
    prompts = prompts_of(part, split)
    table = prompts[[*ENTRY, "pair"]].assign(**pd.DataFrame(values).to_dict("series"))
    pairs, scoring, weights = prompts["pair"].tolist(), part.release.contents.scoring, np.ones(len(prompts))
    if split == "test_swapped":
        cut = balance.cut_dominant(pairs, scoring.balance.dominant_of(part.name), scoring.balance.ratio)
        weights = balance.weights(pairs, cut)
    entry, _ = variants_of_entries(prompts, split, part.tables["variants"])
    table["weight"] = np.round(weights, 6)
    table["adjectives"] = np.bincount(entry, minlength=len(prompts)) + 1
    return table[[*SCORES.columns]].astype({name: column.dtype for name, column in SCORES.columns.items()})


def scored_of(part: ReleasePart, name: str, judges: Mapping[str, SubmittedScores]) -> list[Scored]:
    """Return a submission's scores of one composition, computed from its values."""
    by_judge = {}
    for judge, of in judges.items():
        tables, abouts = dict[str, pd.DataFrame](), list[dict[str, Any]]()
        for each, split, kind in sets_of(part):
            tables[each] = score_frame(part, split, of.values[each])
            abouts += set_abouts(part, each, split, kind, tables[each], of.controls)
        by_judge[judge] = part.summary(judge) | {"generator": name, "scores": abouts}, tables
    return part.of_judges(by_judge)


def set_abouts(
    part: ReleasePart, name: str, split: str, kind: str, table: pd.DataFrame, controls: Mapping[str, Mapping[str, Any]]
) -> Iterable[dict[str, Any]]:
    """Yield the entries of a summary for a set and, in test_seen, also for the prompts whose caption was swapped."""
    keys = pd.MultiIndex.from_frame(part.tables["swapped"][ENTRY[:2]])
    rows = pd.MultiIndex.from_frame(table[ENTRY[:2]]).isin(keys)
    every = "swapped" if split == "test_swapped" else part.release.contents.prompts
    for prompts, of in [(every, table)] + [("swapped", table[rows])] * (split == "test_seen"):
        about = {"set": name, "split": split, "prompts": prompts, "distractors": kind, "judged": len(of)}
        told = controls.get(f"{name} {prompts}") or dict.fromkeys(CONTROLS)
        yield {**about, **adjective_summary(of), **told}


def compare_submissions(
    part: ReleasePart,
    submissions: Iterable[tuple[str, Mapping[str, SubmittedScores]]],
    controls: Collection[str | None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the rows of ``scores.parquet``, ``comparisons.csv`` and ``pairs.csv`` of controls and submissions.

    Args:
        submissions: scores by judge, by the submission's name.
        controls: some of the control generators; None: all.
    """
    scores = [score for score in part.controls if controls is None or score.generator in controls]
    scores += [score for name, judges in submissions for score in scored_of(part, name, judges)]
    variants = read_json(part.folder / "variants.json")["splits"]
    contents, about = part.release.contents, part.about
    composition = scores, read_divergences(part.folder), dict[str, Any](), variants
    return make_table([composition], contents.reference, about.anchors, about.generators, contents.scoring.chunks)


def figures_of(
    release: Release, name: str, judges: Mapping[str, Mapping[str, SubmittedScores]]
) -> list[dict[str, Any]]:
    """Return a submission's rows of ``scores.parquet`` as JSON values, with None for missing values.

    Args:
        judges: the scores of each composition by judge.
    """
    tables = []
    for composition, part in release.parts.items():
        # other controls do not affect the estimates
        anchors = [release.contents.reference, *chain.from_iterable(part.about.anchors.values())]
        tables.append(compare_submissions(part, [(name, judges[composition])], anchors)[0])
    scores = pd.concat(tables, ignore_index=True)
    rows = scores[scores["generator"] == name]
    return rows.astype(object).where(rows.notna(), None).to_dict("records")
