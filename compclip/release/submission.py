"""A submission: the scores of one model on a release, and the values from which they follow.

``values`` has a list for each measured column of ``tables.SCORES``, in the order of a split's
prompts; all other columns and all estimates (``scores``, rows of ``scores.parquet``) follow from
these lists and the release.
"""

import platform
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from typing_extensions import TypedDict

from compclip.core.artifacts.rounding import DECIMALS, json_values
from compclip.core.errors import require
from compclip.core.tables import MEASUREMENTS, SCORES, TESTS
from compclip.generate.generators.folder import equal_fault, equal_images
from compclip.release.config import Line
from compclip.release.file_models import (
    CONTROLS,
    STRICT,
    Chance,
    Name,
    Sha256,
    Signed,
    Strict,
    read_strictly,
)
from compclip.release.open_release import (
    Release,
    ReleasedTables,
    Summarized,
    SummaryKey,
    package_version,
)
from compclip.report.by_pair import pair_rows
from compclip.report.comparisons import comparisons
from compclip.report.composed import Estimates, estimate_all
from compclip.report.make_table import (
    CompositionResults,
    differences_of_rows,
    pairs_of_rows,
    rows_of_composition,
    scores_of_rows,
)
from compclip.report.scored import Scored
from compclip.score.choices import variants_of_entries
from compclip.score.entries import ENTRY, set_names
from compclip.score.score_table import SetScores
from compclip.stats import balance

FAILED = ("missing", "broken")
COUNTS_AS_WRONG = "a missing image counts as wrong"
REPEATS_IMAGES = "repeats images"  # the mark of such a submission
SUBMIT_AGAIN = "draw an image for each text, or submit again with --allow-equal"
WRONG = pd.Series({"p_beaten": 1, "p_tied": 0, "expected_top1": 0})  # of a prompt without an image
# What the texts on the left look like.
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
# Of the columns of ``tables.MEASUREMENTS``, in JSON.
TYPES = {"str": str, "float64": float, "Int64": int}


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
        images: by file_name, the sha256 of the image, ``missing`` or ``broken``.
    """

    prompts: Sha256
    images: dict[str, Annotated[str, Field(pattern="^([0-9a-f]{64}|missing|broken)$")]]
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
FIGURE_TYPES = {name: TYPES[column.dtype] | None for name, column in MEASUREMENTS.columns.items()}
Figure = TypedDict("Figure", FIGURE_TYPES)  # type: ignore[misc]
Figure.__pydantic_config__ = STRICT  # type: ignore[attr-defined]


class Submission(Strict):
    """The content of ``submission.json``.

    ``name``, ``judge_weights``, ``training_data`` and ``environment`` are as told: nothing can
    prove them. ``repeats_images`` follows from the digests of the images.
    """

    schema_version: Literal[3] = 3
    name: Name
    judge_weights: JudgeWeights
    training_data: TrainingData
    repeats_images: bool  # more than a few images equal that of another text
    release: ReleaseId
    environment: Environment
    compositions: dict[str, SubmittedComposition]
    scores: list[Figure]  # type: ignore[valid-type]


def environment() -> Environment:
    """Return the environment of this process."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor()
    values = {"machine": platform.machine()}
    # A line of printable characters, as ``Line`` expects.
    values["processor"] = " ".join(model.split()) or "unknown"
    # The other fields are packages.
    for name in [*Environment.__annotations__][2:]:
        values[name] = package_version(name)
    return Environment(**values)  # type: ignore[typeddict-item]


def look(name: str) -> str:
    """Return what names that look alike have in common."""
    # Compatible characters, such as full-width letters, are one.
    folded = unicodedata.normalize("NFKC", name).casefold()
    for text, similar in LOOK_ALIKE.items():
        folded = folded.replace(text, similar)
    return folded


def check_name(location: object, name: str, release: Release) -> None:
    """Raise UserError if a name could be taken for that of a control of the release."""
    control_by_look = {
        look(control): control
        for composition in release.parts.values()
        for control in composition.contents.generators
    }
    name_look = look(name)
    control = control_by_look.get(name_look)
    fault = f"{name} looks like {control}, a control"
    if name == control:
        fault = f"{name} is a control of the release"
    require(control is None, location, fault, "choose another name")


def read_submission(file: Path, release: Release) -> Submission:
    """Read a submission for this release; UserError if it is damaged, or for a different release or
    judges.
    """
    # The model checks types and ranges, all below whether they fit the release.
    submission = read_strictly(file, Submission, "submit again", "submission")
    scored = submission.release
    fault = (
        f"is for release {scored.name} {scored.version} ({scored.digest[:12]}), not "
        f"{release.title} ({release.digest[:12]})"
    )
    # The digest is that of release.json, which has the digests of all other files.
    is_same = scored == release_id(release)
    require(is_same, file, fault, "give the release that was scored, or submit again")
    check_name(f"{file}: name", submission.name, release)
    # As lists, here and below: the order of figures follows that of compositions and judges.
    is_same = [*submission.compositions] == [*release.parts]
    require(is_same, file, "other compositions than the release", "submit again")
    repeated = ""
    for name, composition in release.parts.items():
        submitted = submission.compositions[name]
        location = f"{file}: {name}"
        _check_images(location, submitted, composition)
        _check_sets(location, submitted, composition)
        fault = repeated_images(composition.tables["prompts"], submitted.images)
        require(submission.repeats_images or not fault, location, fault, SUBMIT_AGAIN)
        repeated = repeated or fault
    # Its mark on pages is computed, not told.
    is_same = submission.repeats_images == bool(repeated)
    require(is_same, file, "repeats_images is true, but no images repeat", "submit again")
    return submission


def repeated_images(prompts: pd.DataFrame, digests: Mapping[str, str]) -> str:
    """Return what is wrong if images repeat for different texts, else "".

    Args:
        digests: as ``SubmittedComposition.images``.
    """
    made = {name: digest for name, digest in digests.items() if digest not in FAILED}
    return equal_fault(equal_images(prompts, made), len(made))


def release_id(release: Release) -> ReleaseId:
    contents = release.contents
    return ReleaseId(name=contents.name, version=contents.version, digest=release.digest)


def _check_images(
    location: str, submitted: SubmittedComposition, composition: ReleasedTables
) -> None:
    """Raise UserError unless prompts, judges and images are those of the release."""
    is_same = submitted.prompts == composition.prompts_digest
    require(is_same, location, "prompts differ from those of the release", "submit again")
    hashes = {judge: released.hash for judge, released in composition.contents.judges.items()}
    submitted_hashes = {judge: scores.hash for judge, scores in submitted.judges.items()}
    fault = f"judges {submitted_hashes} are not those of the release, {hashes}"
    is_same = [*submitted_hashes.items()] == [*hashes.items()]
    require(is_same, location, fault, "submit again")
    prompts = composition.tables["prompts"]
    names = set(prompts["file_name"])
    images = submitted.images
    fault = f"images of {len(images)} prompts, expected {len(names)}: {COUNTS_AS_WRONG}"
    require(set(images) == names, location, fault, "submit again")


def _check_sets(
    location: str, submitted: SubmittedComposition, composition: ReleasedTables
) -> None:
    """Raise UserError unless the sets and the number of values are those of the release."""
    sets = {name: split for name, split, _ in sets_of(composition)}
    controls = [control_key(key.set, key.prompts) for key in composition.summaries]
    for judge, scores in submitted.judges.items():
        judge_location = f"{location}: judge {judge}"
        fault = f"sets {', '.join(scores.values)}, expected {', '.join(sets)}"
        require([*scores.values] == [*sets], judge_location, fault)
        fault = f"controls of {', '.join(scores.controls)}, expected {', '.join(controls)}"
        require([*scores.controls] == controls, judge_location, fault, "submit again")
        for name, split in sets.items():
            prompts = prompts_of(composition, split)
            values = {**scores.values[name]}
            check_values(f"{judge_location}: {name}", values, prompts, submitted.images)


def check_values(
    location: str, values: Mapping[str, Any], prompts: pd.DataFrame, images: Mapping[str, str]
) -> None:
    """Raise UserError unless all values are in range, missing images count as wrong, and chances
    are consistent.
    """
    n = len(prompts)
    for name, column in values.items():
        fault = f"{name}: {len(column)} values for {n} prompts: {COUNTS_AS_WRONG}"
        require(len(column) == n, location, fault, "submit again")
    table = pd.DataFrame(values, index=prompts["file_name"])
    failed = table.index.map(images).isin(FAILED)
    has_similarity = table["similarity"].notna()
    # A prompt without variants has no chance, whether or not it has an image.
    chances = table[["hit", "adjective_first", "adjusted_first"]]
    is_wrong = chances.fillna(0).eq(0).all(axis=1)
    is_wrong &= ~has_similarity & (table[WRONG.index] == WRONG).all(axis=1)
    _require_none(location, failed & ~is_wrong, "has no image but counts as scored")
    _require_none(location, ~failed & ~has_similarity, "has an image but no similarity")


def _require_none(location: str, rows: pd.Series, fault: str) -> None:
    """Raise UserError for the first of ``rows``, booleans by file_name."""
    first = next(iter(rows.index[rows]), "")
    require(not rows.any(), location, f"{first} {fault}", "submit again")


def sets_of(composition: ReleasedTables) -> list[tuple[str, str, str]]:
    """Return name, split and distractors of each scored set."""
    return list(set_names(TESTS, composition.release.contents.scoring.distractors))


def prompts_of(composition: ReleasedTables, split: str) -> pd.DataFrame:
    """Return the prompts of a split in the order of values."""
    prompts = composition.tables["prompts"]
    return prompts[prompts["split"] == split].sort_values(ENTRY, ignore_index=True)


def control_key(set_name: str, prompts: str) -> str:
    """Return the key of a summary's controls."""
    return f"{set_name} {prompts}"


def submitted_scores(judge_hash: str, scored: Mapping[str, SetScores]) -> SubmittedScores:
    """Return the scores by one judge in the form of a submission."""
    controls = {}
    values = {}
    for name, scores in scored.items():
        columns = scores.table[[*MEASURED]].to_dict("list")
        values[name] = json_values(columns)
        for summary in scores.summaries:
            # test_seen has two summaries, of all prompts and of the swapped ones.
            key = control_key(summary["set"], summary["prompts"])
            controls[key] = {control: summary[control] for control in CONTROLS}
    return SubmittedScores(hash=judge_hash, values=values, controls=controls)


def score_frame(composition: ReleasedTables, split: str, values: MeasuredValues) -> pd.DataFrame:
    """Return ``tables.SCORES`` of a set, from its values and the release."""
    prompts = prompts_of(composition, split)
    table = prompts[[*ENTRY, "pair"]].assign(**pd.DataFrame(values).to_dict("series"))
    # Computed here, so that a submission cannot choose its weights.
    weights = np.ones(len(prompts))
    if split == "test_swapped":
        pairs = prompts["pair"].tolist()
        weights = balance.weights(pairs, composition.rules.cap(pairs))
    # The judge chooses among the prompt's own adjective and those of its variants.
    entry, _ = variants_of_entries(prompts, split, composition.tables["variants"])
    variants = np.bincount(entry, minlength=len(prompts))
    table["adjectives"] = variants + 1
    table["weight"] = np.round(weights, DECIMALS)
    types = {name: column.dtype for name, column in SCORES.columns.items()}
    return table[[*SCORES.columns]].astype(types)


def scored_of(composition: ReleasedTables, name: str, judges: ScoresByJudge) -> list[Scored]:
    """Return a submission's scores of one composition, computed from its values."""
    # In the order of the release's judges: the first one names the entries of all.
    by_judge = {}
    for judge in composition.contents.judges:
        scores = judges[judge]
        tables = {
            set_name: score_frame(composition, split, scores.values[set_name])
            for set_name, split, _ in sets_of(composition)
        }
        controls: dict[SummaryKey, Mapping[str, Any]] = {
            key: {**scores.controls[control_key(key.set, key.prompts)]}
            for key in composition.summaries
        }
        summary = composition.scored(name, judge, tables, controls)
        by_judge[judge] = Summarized(summary, tables)
    return composition.of_judges(by_judge)


@dataclass(frozen=True)
class ComparedSubmissions:
    """The controls of a composition and submissions; a table is computed when it is first used."""

    composition: ReleasedTables
    submitted: Sequence[Scored]

    @cached_property
    def results(self) -> CompositionResults:
        # A control by a single judge is in no table of a release.
        controls = [score for score in self.composition.controls if not score.single_judge]
        scores = [*controls, *self.submitted]
        variants = self.composition.variants
        return CompositionResults(scores, self.composition.divergences, fids={}, variants=variants)

    @cached_property
    def estimates(self) -> Estimates | None:
        # Controls are not ranked, so simultaneous intervals are over the submissions alone.
        settings = self.composition.contents
        return estimate_all(self.results.scores, settings.anchors, settings.generators)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The rows of ``scores.parquet``."""
        chunks = self.composition.release.contents.scoring.chunks
        return scores_of_rows(rows_of_composition(self.results, self.estimates, chunks))

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """The rows of ``comparisons.csv``."""
        return differences_of_rows(comparisons(self.results.scores))

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The rows of ``pairs.csv`` of the submissions."""
        return pairs_of_rows(pair_rows(self.submitted, self.estimates))


def compare_submissions(
    composition: ReleasedTables, submissions: Iterable[tuple[str, ScoresByJudge]]
) -> ComparedSubmissions:
    """Return the tables of controls and submissions.

    Args:
        submissions: scores by judge, by the submission's name.
    """
    submitted = list[Scored]()
    for name, judges in submissions:
        submitted += scored_of(composition, name, judges)
    return ComparedSubmissions(composition, submitted)


def figures_of(
    release: Release, name: str, judges: Mapping[str, ScoresByJudge]
) -> list[dict[str, Any]]:
    """Return a submission's rows of ``scores.parquet`` as JSON values, with None for missing
    values.

    Args:
        judges: the scores of each composition by judge.
    """
    tables = []
    for composition_name, composition in release.parts.items():
        tables.append(compare_submissions(composition, [(name, judges[composition_name])]))
    return figures_in(tables, name)


def figures_in(tables: Iterable[ComparedSubmissions], name: str) -> list[dict[str, Any]]:
    """Return a submission's rows of the tables of all compositions as ``figures_of`` does."""
    table = pd.concat([compared.scores for compared in tables], ignore_index=True)
    rows = table[table["generator"] == name]
    # JSON has no NaN; objects, because columns of numbers have no None.
    values = rows.astype(object).where(rows.notna(), None)
    return values.to_dict("records")
