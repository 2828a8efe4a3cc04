"""Verify a submission: all figures follow from its values and, given its images, the values follow
from them.

On the same processor model, with the same versions of packages, everything must be equal. Elsewhere
rounding differs: similarities may differ by ``SIMILARITY``, and captions with almost equal
similarities may change ranks. Such *near ties* are listed; more than ``NEAR_TIES`` of a set are a
difference.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.heldout import split_pair
from compclip.core.errors import require
from compclip.core.identity.digests import sha256
from compclip.core.settings.cli import Command
from compclip.core.settings.section import CacheFolder
from compclip.release.check import ROUNDING, equal
from compclip.release.file_models import Name, Sha256, Strict, read_strictly
from compclip.release.open_release import Release, ReleasedTables, open_release
from compclip.release.recorded import recorded_note, unequal_recorded
from compclip.release.submission import (
    MEASURED,
    MeasuredValues,
    ScoresByJudge,
    Submission,
    SubmittedScores,
    environment,
    figures_of,
    prompts_of,
    read_submission,
    score_frame,
    sets_of,
)
from compclip.release.submit import all_pictures, score_parts
from compclip.score.choices import variants_of_entries
from compclip.stats.r_precision import expected_top1

# Values that do not depend on the distractors.
OF_SPLIT = ("similarity", "adjective_first", "adjusted_first", "adjective_chosen")
SIMILARITY = 1e-5
NEAR_TIES = 0.001
# Columns that name a figure in a line.
FIGURE = ("composition", "judge_seed", "split", "prompts", "measure")
LISTED = 10  # number of near ties that are listed
UNPROVEN_VALUES = (
    "Without images, this does not prove that the values come from images: similarities, ranks, "
    "hits and the controls"
    " (blind_control, hubness) may be invented consistently."
)
UNPROVEN_ORIGIN = (
    "Not proven: that the model drew the images, from these prompts alone and without a choice "
    "among several, and what"
    " the submission says of judge weights."
)


class VerifySubmission(Command):
    """Verify a submission: prints a line for each difference, and exits with 1 if there are any."""

    submission: CliPositionalArg[Path] = Field(description="submission.json")
    release: Path = Field(description="folder of the release")
    images: Path | None = Field(
        None, description="folder of the images; none: only consistency is verified"
    )
    record: Path | None = Field(
        None,
        description="JSON file of verified submissions, to which this one is added, for compclip "
        "leaderboard",
    )
    device: str = Field("cpu", pattern="^(auto|cpu|cuda)$", description="cpu, cuda or auto")
    cache: CacheFolder


class VerifiedSubmission(Strict):
    """What ``--record`` remembers of a submission, by its sha256."""

    name: Name
    release: Sha256


def read_verified(file: Path) -> dict[str, VerifiedSubmission]:
    """Return the verified submissions by their sha256."""
    return read_strictly(
        file, dict[Sha256, VerifiedSubmission], "correct its path, or verify again"
    )


Faults = Iterator[tuple[str, np.ndarray]]


def entry_faults(
    composition: ReleasedTables, split: str, judge: str, values: MeasuredValues
) -> Faults:
    """Yield each kind of impossible value, and which entries (n,) have it."""
    table = score_frame(composition, split, values)
    yield from _rank_faults(composition, table)
    is_adjusted = composition.adjustment(judge) is not None
    yield from _adjective_faults(table, "adjective_first", is_scored=True)
    yield from _adjective_faults(table, "adjusted_first", is_scored=is_adjusted)
    is_wrong = wrongly_chosen(composition, split, table)
    yield "adjective_chosen does not follow from adjective_first", is_wrong


def _rank_faults(composition: ReleasedTables, table: pd.DataFrame) -> Faults:
    """Yield the faults of R-precision."""
    rules = composition.rules
    beaten = table["p_beaten"].to_numpy()
    tied = table["p_tied"].to_numpy()
    has_image = table["similarity"].notna().to_numpy()
    is_above_one = beaten + tied > 1 + ROUNDING
    yield "p_beaten and p_tied are more than 1 together", is_above_one
    # The exact score is a function of the two, so a submission cannot choose it.
    expected = expected_top1(beaten, tied, rules.candidates, rules.scoring.ties)
    difference = np.abs(expected - table["expected_top1"].to_numpy())
    # The rounding of p_beaten and p_tied changes expected_top1 by up to ``candidates`` times as
    # much.
    # Negated, so that NaN is far.
    is_far = ~(difference <= rules.candidates * ROUNDING)
    yield "expected_top1 does not follow from p_beaten and p_tied", has_image & is_far
    # A sampled hit is random, but these two cases are certain.
    hit = table["hit"].to_numpy()
    yield "a hit, although all distractors rank higher", hit & (beaten == 1)
    is_certain = (table["expected_top1"] == 1).to_numpy()
    yield "no hit, although no distractor ranks as high", has_image & ~hit & is_certain


def _adjective_faults(table: pd.DataFrame, column: str, *, is_scored: bool) -> Faults:
    """Yield the faults of the chance that an adjective is first; ``is_scored``: whether the judge
    gives one.
    """
    first = table[column].to_numpy()
    adjectives = table["adjectives"].to_numpy()
    # The chance is 0 or, if k adjectives tie, 1 / k.
    ties = np.round(1 / np.where(first > 0, first, 1))
    is_fraction = np.abs(first * ties - 1) < adjectives * ROUNDING
    is_possible = (first == 0) | is_fraction & (ties <= adjectives)
    # Without another adjective, or without an adjustment, there must be no value.
    has_choice = is_scored & (adjectives > 1)
    is_wrong = np.where(np.isnan(first), has_choice, ~is_possible | ~has_choice)
    yield f"{column} is not a chance among the prompt's adjectives", is_wrong


def wrongly_chosen(composition: ReleasedTables, split: str, table: pd.DataFrame) -> np.ndarray:
    """Return which entries (n,) name an adjective that was not offered, or another one than
    ``adjective_first``.
    """
    variants = composition.tables["variants"]
    entry, variant = variants_of_entries(prompts_of(composition, split), split, variants)
    # The adjectives of each entry's variants.
    offered = set(zip(entry.tolist(), variants["adjective"].iloc[variant], strict=True))
    has_choice = (table["similarity"].notna() & (table["adjectives"] > 1)).to_numpy()
    rows = zip(table["pair"], table["adjective_first"], table["adjective_chosen"], strict=True)
    wrong = np.zeros(len(table), bool)
    for row, (pair, first, chosen) in enumerate(rows):
        # Without an image or another adjective, none is chosen.
        if not has_choice[row]:
            wrong[row] = not pd.isna(chosen)
        elif first > 0:
            # A tie is won by the prompt (``choices.ranked_first``).
            own_adjective = None if pd.isna(pair) else split_pair(pair)[0]
            wrong[row] = chosen != own_adjective
        else:
            wrong[row] = (row, chosen) not in offered
    return wrong


def set_faults(composition: ReleasedTables, scores: SubmittedScores) -> Iterator[str]:
    """Yield each contradiction between the sets of a split."""
    first_set = dict[str, str]()
    for name, split, _ in sets_of(composition):
        # Sets of a split have the same images and variants, and differ only in their pools.
        first = first_set.setdefault(split, name)
        # As plain mappings, since a TypedDict has only literal keys.
        values: Mapping[str, Any] = {**scores.values[name]}
        first_values: Mapping[str, Any] = {**scores.values[first]}
        for column in OF_SPLIT:
            if values[column] != first_values[column]:
                yield f"{name}: {column} differs from that of {first}, which has the same images"


def inconsistent(release: Release, submission: Submission) -> Iterator[str]:
    """Yield each inconsistency of a submission's values and figures, and of what a release says of
    other judges.
    """
    for name, composition in release.parts.items():
        yield from unequal_recorded(composition)
        for judge, scores in submission.compositions[name].judges.items():
            for fault in _inconsistent_scores(composition, judge, scores):
                yield f"{name}, judge {judge}, {fault}"
    judges = {name: submitted.judges for name, submitted in submission.compositions.items()}
    computed = figures_of(release, submission.name, judges)
    yield from unequal_figures(submission.scores, computed)


def _inconsistent_scores(
    composition: ReleasedTables, judge: str, scores: SubmittedScores
) -> Iterator[str]:
    """Yield each inconsistency of the values by one judge."""
    for set_name, split, _ in sets_of(composition):
        names = prompts_of(composition, split)["file_name"]
        for fault, rows in entry_faults(composition, split, judge, scores.values[set_name]):
            if rows.any():
                yield f"{set_name}: {names[rows].iloc[0]}: {fault}{_count(rows)}"
    yield from set_faults(composition, scores)


def _count(rows: np.ndarray) -> str:
    """Return how many entries have a fault, "" for one."""
    return f" ({rows.sum()} entries)" if rows.sum() > 1 else ""


def unequal_figures(submitted: Sequence[Any], computed: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each figure of a submission that differs from that computed from its values."""
    # Rows are compared one by one, in their order in ``scores.parquet``.
    if len(submitted) != len(computed):
        yield f"scores: {len(submitted)} rows, {len(computed)} follow from the values"
        return
    for figure, expected in zip(submitted, computed, strict=True):
        names = [expected[key] for key in FIGURE if expected[key] is not None]
        location = ", ".join(map(str, names))
        for key, value in expected.items():
            if not equal(figure[key], value):
                difference = f"{key} is {figure[key]!r}, {value!r} follows from the values"
                yield f"scores: {location}: {difference}"


class Differences(NamedTuple):
    """What differs between a submission and what is computed from its images."""

    lines: list[str]
    near_ties: list[str]


def unequal_values(
    location: str,
    submitted: Mapping[str, Any],
    computed: Mapping[str, Any],
    names: pd.Series,
    same: bool,
) -> Differences:
    """Return the differences of a set's values from those computed from the images, and near ties.

    Args:
        names: (n,) file_name of each entry.
        same: whether processor and packages are the same, so that values must be equal.
    """
    # Similarities are float32 products, all other values have six decimals.
    is_similarity = np.array(MEASURED) == "similarity"
    tolerances = np.where(is_similarity, SIMILARITY, ROUNDING)
    if same:
        tolerances = np.zeros(len(MEASURED))
    is_far = ~np.isclose(
        as_numbers(submitted), as_numbers(computed), rtol=0, atol=tolerances, equal_nan=True
    )
    is_near_tie = np.zeros(len(names), bool)
    if not same:
        # Almost equal similarities may change ranks, but do not differ themselves.
        is_near_tie = is_far.any(axis=1) & ~is_far[:, is_similarity].any(axis=1)
        # So many are no rounding: then all of them are differences.
        if is_near_tie.sum() > NEAR_TIES * len(names):
            is_near_tie[:] = False
    is_far[is_near_tie] = False
    lines = []
    for number, column in enumerate(MEASURED):
        rows = is_far[:, number]
        if rows.any():
            first = int(rows.argmax())
            values = f"{submitted[column][first]} submitted, {computed[column][first]} computed"
            entry = f"{location}: {names.iloc[first]}"
            lines.append(f"{entry}: {column}: {values}{_count(rows)}")
    return Differences(lines, [f"{location}: {name}" for name in names[is_near_tie]])


def as_numbers(values: Mapping[str, Any]) -> pd.DataFrame:
    """Return the values of a set as numbers; equal adjectives are equal numbers."""
    # ``np.isclose`` compares only numbers.
    codes = [
        None if pd.isna(name) else zlib.crc32(str(name).encode())
        for name in values["adjective_chosen"]
    ]
    table = pd.DataFrame(values).assign(adjective_chosen=codes)
    return table.astype(dict.fromkeys(MEASURED, float))


def unequal_images(submitted: Mapping[str, str], actual: Mapping[str, str]) -> Iterator[str]:
    """Yield a line if images differ from the submitted ones."""
    unequal = [name for name, digest in submitted.items() if digest != actual[name]]
    if unequal:
        first = unequal[0]
        # The first digits are enough to tell two digests apart.
        submitted_digest = submitted[first][:12]
        actual_digest = actual[first][:12]
        digests = f"{submitted_digest} submitted, {actual_digest} found"
        yield f"{len(unequal)} images are not those submitted, the first {first}: {digests}"


def unequal_scores(
    release: Release, submission: Submission, computed: Mapping[str, ScoresByJudge], same: bool
) -> Differences:
    """Return the differences of all values from those computed from the images, and near ties."""
    lines = list[str]()
    near_ties = list[str]()
    for name, composition in release.parts.items():
        for judge, scores in submission.compositions[name].judges.items():
            computed_scores = computed[name][judge]
            for set_name, split, _ in sets_of(composition):
                set_differences = unequal_values(
                    f"{name}, judge {judge}, {set_name}",
                    {**scores.values[set_name]},
                    {**computed_scores.values[set_name]},
                    prompts_of(composition, split)["file_name"],
                    same,
                )
                lines += set_differences.lines
                near_ties += set_differences.near_ties
            for line in _unequal_controls(scores, computed_scores, same):
                lines.append(f"{name}, judge {judge}, {line}")
    return Differences(lines, near_ties)


def _unequal_controls(
    submitted: SubmittedScores, computed: SubmittedScores, same: bool
) -> Iterator[str]:
    """Yield each control of a set that differs from that computed from the images."""
    # A control is a fraction of the entries, each of which may be a near tie.
    tolerance = 0 if same else NEAR_TIES
    for key, controls in computed.controls.items():
        values: Mapping[str, Any] = {**submitted.controls[key]}
        for control, value in controls.items():
            if not equal(values[control], value, tolerance):
                yield f"{key}: {control}: {values[control]} submitted, {value} computed"


def verify(
    release: Release, submission: Submission, command: VerifySubmission, same: bool
) -> Differences:
    """Return what differs in a submission; its values are computed again if there are images."""
    # Without images first, since encoding them takes minutes.
    lines = list(inconsistent(release, submission))
    if command.images is None or lines:
        return Differences(lines, [])
    pictures = all_pictures(release, command.images)
    for name, images in pictures.items():
        submitted_images = submission.compositions[name].images
        for line in unequal_images(submitted_images, images.digests):
            lines.append(f"{name}: {line}")
    # Other images have other scores, so these would only repeat the difference.
    if lines:
        return Differences(lines, [])
    computed = score_parts(release, pictures, command.device, command.cache)
    return unequal_scores(release, submission, computed, same)


def main(command: VerifySubmission) -> None:
    is_unproven_record = command.record is not None and command.images is None
    fault = "only a submission that is verified by its images is recorded"
    require(not is_unproven_record, "--record", fault, "add --images")
    release = open_release(command.release)
    submission = read_submission(command.submission, release)
    same = submission.environment == environment()
    differences = verify(release, submission, command, same)
    for line in differences.lines:
        print(f"difference: {line}")
    if differences.lines:
        raise SystemExit(1)
    for note in filter(None, map(recorded_note, release.parts.values())):
        print(note)
    near_ties = differences.near_ties
    for tie in near_ties[:LISTED]:
        print(f"near tie: {tie}")
    if command.images is None:
        print(
            f"consistent: all figures of {submission.name} follow from its values. "
            f"{UNPROVEN_VALUES} {UNPROVEN_ORIGIN}"
        )
        return
    closeness = "exactly"
    if not same:
        ties = f"{len(near_ties)} near ties"
        closeness = f"within rounding (similarities within {SIMILARITY}, {ties})"
    print(
        f"verified: all values and figures of {submission.name} follow from its images "
        f"{closeness}. {UNPROVEN_ORIGIN}"
    )
    if command.record:
        record_submission(command.record, command.submission, release, submission)


def record_submission(record: Path, file: Path, release: Release, submission: Submission) -> None:
    """Add a verified submission to the record."""
    submissions = read_verified(record) if record.exists() else {}
    # By the file's digest, so that a changed submission is not taken for a verified one.
    digest = sha256(file)
    submissions[digest] = VerifiedSubmission(name=submission.name, release=release.digest)
    contents = {digest: submission.model_dump() for digest, submission in submissions.items()}
    write_json(contents, record)
