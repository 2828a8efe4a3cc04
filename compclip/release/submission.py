"""A submission: the scores of one model on a release, and the values from which they follow.

``values`` has a list for each measured column of ``tables.SCORES``, in the order of a split's
prompts; all other columns and all estimates (``scores``, rows of ``scores.parquet``) follow from
these lists and the release.
"""

import platform
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from typing_extensions import TypedDict

from compclip.core.errors import require
from compclip.core.rounding import json_values
from compclip.core.tables import MEASUREMENTS, SCORES, TESTS
from compclip.generate.generators.folder import MOST_EQUAL
from compclip.release.config import Line
from compclip.release.models import (
    CONTROLS,
    STRICT,
    Chance,
    Name,
    Sha256,
    Signed,
    Strict,
    read_strictly,
)
from compclip.release.released import Release, ReleasePart, package_version
from compclip.report.make_table import Composition, make_table
from compclip.report.table import Scored
from compclip.score.choices import variants_of_entries
from compclip.score.entries import ENTRY, set_names
from compclip.score.scores import SetScores
from compclip.stats import balance

FAILED = ("missing", "unreadable")
WRONG = pd.Series({"p_beaten": 1, "p_tied": 0, "expected_top1": 0})  # of a prompt without an image
LOOK_ALIKE = {
    "-": "",
    "_": "",
    "0": "o",
    "1": "l",
    "i": "l",
    "3": "e",
    "4": "a",
    "5": "s",
    "rn": "m",
    "cl": "d",
}
JudgeWeights = Literal["none", "guided", "re-ranked"]
TrainingData = Literal["split", "other", "unknown"]
TYPES = {
    "str": str,
    "float64": float,
    "Int64": int,
}  # of the columns of ``tables.MEASUREMENTS``, in JSON


class ReleaseId(Strict):
    """The scored release; digest: the sha256 of its release.json."""

    name: Name
    version: Line
    digest: Sha256


class MeasuredValues(TypedDict):
    """The values of a set, a list for each measured column of ``tables.SCORES``."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    similarity: list[Signed | None]
    p_beaten: list[Chance]
    p_tied: list[Chance]
    expected_top1: list[Chance]
    hit: list[bool]
    adjective_first: list[Chance | None]
    adjusted_first: list[Chance | None]
    adjective_chosen: list[str | None]


MEASURED = tuple(MeasuredValues.__annotations__)


class ControlValues(TypedDict):
    """The controls of a set that need the images; without the images they are as told."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    blind_control: Chance | None
    hubness: Chance | None


class SubmittedScores(Strict):
    """The scores by one judge, by set, and the controls, by set and prompts."""

    hash: Line
    values: dict[str, MeasuredValues]
    controls: dict[str, ControlValues]


ScoresByJudge = dict[str, SubmittedScores]


class SubmittedComposition(Strict):
    """The scores of one composition.

    Args:
        prompts: sha256 of prompts.parquet.
        images: by file_name, the sha256 of the image, ``missing`` or ``unreadable``.
    """

    prompts: Sha256
    images: dict[str, Annotated[str, Field(pattern="^([0-9a-f]{64}|missing|unreadable)$")]]
    judges: ScoresByJudge


class Environment(TypedDict):
    """The processor, as reported by Linux, and the versions of packages: both affect embeddings'
    rounding.
    """

    __pydantic_config__ = STRICT  # type: ignore[misc]

    machine: Line
    processor: Line
    compclip: Line
    numpy: Line
    open_clip_torch: Line
    pillow: Line
    torch: Line


# A row of ``scores.parquet``.
Figure = TypedDict(
    "Figure", {name: TYPES[column.dtype] | None for name, column in MEASUREMENTS.columns.items()}
)  # type: ignore
Figure.__pydantic_config__ = STRICT  # type: ignore[attr-defined]


class Submission(Strict):
    """The content of ``submission.json``.

    ``name``, ``judge_weights``, ``training_data`` and ``environment`` are as told: nothing can
    prove them.
    """

    schema_version: Literal[2] = 2
    name: Name
    judge_weights: JudgeWeights
    training_data: TrainingData
    release: ReleaseId
    environment: Environment
    compositions: dict[str, SubmittedComposition]
    scores: list[Figure]  # type: ignore[valid-type]


def environment() -> Environment:
    """Return the environment of this process."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    packages = [*Environment.__annotations__][2:]
    processor = " ".join(next(models, platform.processor()).split()) or "unknown"
    about = {"machine": platform.machine(), "processor": processor}
    return Environment(**about, **{name: package_version(name) for name in packages})  # type: ignore[typeddict-item]


def look(name: str) -> str:
    """Return what names that look alike have in common."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    for seen, like in LOOK_ALIKE.items():
        folded = folded.replace(seen, like)
    return folded


def check_name(where: object, name: str, release: Release) -> None:
    """Raise UserError if a name could be taken for that of a control of the release."""
    controls = {
        look(control): control
        for part in release.parts.values()
        for control in part.about.generators
    }
    control = controls.get(look(name))
    fault = (
        f"{name} is a control of the release"
        if name == control
        else f"{name} looks like {control}, a control"
    )
    require(control is None, where, fault, "choose another name")


def read_submission(file: Path, release: Release) -> Submission:
    """Read a submission for this release; UserError if it is damaged, or for a different release or
    judges.
    """
    submission = read_strictly(file, Submission, "submit again", "submission")
    of = submission.release
    fault = (
        f"is for release {of.name} {of.version} ({of.digest[:12]}), not {release.title} "
        f"({release.digest[:12]})"
    )
    own = ReleaseId(
        name=release.contents.name, version=release.contents.version, digest=release.digest
    )
    require(of == own, file, fault, "give the release that was scored, or submit again")
    check_name(f"{file}: name", submission.name, release)
    require(
        [*submission.compositions] == [*release.parts],
        file,
        "other compositions than the release",
        "submit again",
    )
    for name, part in release.parts.items():
        _check_part(file, name, submission.compositions[name], part)
    return submission


def _check_part(file: Path, name: str, of: SubmittedComposition, part: ReleasePart) -> None:
    """Raise UserError unless prompts, judges and the number of values are those of the release."""
    where = f"{file}: {name}"
    require(
        of.prompts == part.prompts_digest,
        where,
        "prompts differ from those of the release",
        "submit again",
    )
    hashes = {judge: about.hash for judge, about in part.about.judges.items()}
    given = {judge: scores.hash for judge, scores in of.judges.items()}
    require(
        [*given.items()] == [*hashes.items()],
        where,
        f"judges {given} are not those of the release, {hashes}",
        "submit again",
    )
    names = set(part.tables["prompts"]["file_name"])
    fault = (
        f"images of {len(of.images)} prompts, expected {len(names)}: a missing image counts "
        "as wrong"
    )
    require(set(of.images) == names, where, fault, "submit again")
    digests = part.tables["prompts"]["file_name"].map(of.images)
    made = digests.where(~digests.isin(FAILED))
    first = part.tables["prompts"]["text"].groupby(made).transform("first")
    equal = made.notna() & (part.tables["prompts"]["text"] != first)
    fault = f"{equal.sum()} of {made.count()} images are equal to that of another text"
    require(
        equal.sum() <= MOST_EQUAL * made.count(),
        where,
        fault,
        "draw an image for each text, and submit again",
    )
    sets = {each: split for each, split, _ in sets_of(part)}
    controls = [f"{key.set} {key.prompts}" for key in part.summaries]
    for judge, scores in of.judges.items():
        by_judge = f"{where}: judge {judge}"
        require(
            [*scores.values] == [*sets],
            by_judge,
            f"sets {', '.join(scores.values)}, expected {', '.join(sets)}",
        )
        fault = f"controls of {', '.join(scores.controls)}, expected {', '.join(controls)}"
        require([*scores.controls] == controls, by_judge, fault, "submit again")
        for each, split in sets.items():
            check_values(
                f"{by_judge}: {each}", {**scores.values[each]}, prompts_of(part, split), of.images
            )


def check_values(
    where: str, values: Mapping[str, Any], prompts: pd.DataFrame, images: Mapping[str, str]
) -> None:
    """Raise UserError unless all values are in range, missing images count as wrong, and chances
    are consistent.
    """
    for name, column in values.items():
        fault = (
            f"{name}: {len(column)} values for {len(prompts)} prompts: a missing image counts "
            "as wrong"
        )
        require(len(column) == len(prompts), where, fault, "submit again")
    table = pd.DataFrame(values, index=prompts["file_name"])
    failed = table.index.map(images).isin(FAILED)
    wrong = table[["hit", "adjective_first", "adjusted_first"]].fillna(0).eq(0).all(axis=1)
    wrong &= table["similarity"].isna() & (table[WRONG.index] == WRONG).all(axis=1)
    for rows, fault in (
        (failed & ~wrong, "has no image but counts as scored"),
        (~failed & table["similarity"].isna(), "has an image but no similarity"),
    ):
        require(
            not rows.any(), where, f"{next(iter(table.index[rows]), '')} {fault}", "submit again"
        )


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
        f"{summary['set']} {summary['prompts']}": {name: summary[name] for name in CONTROLS}
        for of in scored.values()
        for summary in of.summaries
    }
    values = {
        name: json_values(of.table[[*MEASURED]].to_dict("list")) for name, of in scored.items()
    }
    return SubmittedScores(hash=judge_hash, values=values, controls=controls)


def score_frame(part: ReleasePart, split: str, values: MeasuredValues) -> pd.DataFrame:
    """Return ``tables.SCORES`` of a set, from its values and the release."""
    prompts = prompts_of(part, split)
    table = prompts[[*ENTRY, "pair"]].assign(**pd.DataFrame(values).to_dict("series"))
    pairs, scoring, weights = (
        prompts["pair"].tolist(),
        part.release.contents.scoring,
        np.ones(len(prompts)),
    )
    if split == "test_swapped":
        cut = balance.cut_dominant(
            pairs, scoring.balance.dominant_of(part.name), scoring.balance.ratio
        )
        weights = balance.weights(pairs, cut)
    entry, _ = variants_of_entries(prompts, split, part.tables["variants"])
    table["weight"] = np.round(weights, 6)
    table["adjectives"] = np.bincount(entry, minlength=len(prompts)) + 1
    return table[[*SCORES.columns]].astype(
        {name: column.dtype for name, column in SCORES.columns.items()}
    )


def scored_of(part: ReleasePart, name: str, judges: ScoresByJudge) -> list[Scored]:
    """Return a submission's scores of one composition, computed from its values."""
    by_judge = {}
    for judge in part.about.judges:
        of = judges[judge]
        tables = {
            each: score_frame(part, split, of.values[each]) for each, split, _ in sets_of(part)
        }
        told = {key: of.controls[f"{key.set} {key.prompts}"] for key in part.summaries}
        by_judge[judge] = part.scored(name, judge, tables, told), tables
    return part.of_judges(by_judge)


def compare_submissions(
    part: ReleasePart,
    submissions: Iterable[tuple[str, ScoresByJudge]],
    controls: Collection[str | None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the rows of ``scores.parquet``, ``comparisons.csv`` and ``pairs.csv`` of controls and
    submissions.

    Args:
        submissions: scores by judge, by the submission's name.
        controls: some of the control generators; None: all.
    """
    scores = [score for score in part.controls if controls is None or score.generator in controls]
    scores += [score for name, judges in submissions for score in scored_of(part, name, judges)]
    contents, about = part.release.contents, part.about
    composition = Composition(scores, part.divergences, fids={}, variants=part.variants)
    return make_table([composition], about.anchors, about.generators, contents.scoring.chunks)


def figures_of(
    release: Release, name: str, judges: Mapping[str, ScoresByJudge]
) -> list[dict[str, Any]]:
    """Return a submission's rows of ``scores.parquet`` as JSON values, with None for missing
    values.

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
