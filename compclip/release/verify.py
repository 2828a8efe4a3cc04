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
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.cli import Command
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.heldout import split_pair
from compclip.core.section import CacheFolder
from compclip.io import write_json
from compclip.release.models import Name, Sha256, Strict, read_strictly
from compclip.release.released import Release, ReleasePart, open_release
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
SIX_DECIMALS = 2e-6  # for values and figures with six decimals
SIMILARITY = 1e-5
NEAR_TIES = 0.001
FIGURE = (
    "composition",
    "judge_seed",
    "split",
    "prompts",
    "measure",
)  # columns that name a figure in a line
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


def entry_faults(
    part: ReleasePart, split: str, judge: str, values: MeasuredValues
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each kind of impossible value, and which entries (n,) have it."""
    table, rules = score_frame(part, split, values), part.rules
    beaten, tied = table["p_beaten"].to_numpy(), table["p_tied"].to_numpy()
    expected = expected_top1(beaten, tied, rules.candidates, rules.scoring.ties)
    made = table["similarity"].notna().to_numpy()
    # The rounding of p_beaten and p_tied changes expected_top1 by up to ``candidates`` times as
    # much.
    far = ~(np.abs(expected - table["expected_top1"].to_numpy()) <= rules.candidates * SIX_DECIMALS)
    yield "p_beaten and p_tied are more than 1 together", beaten + tied > 1 + SIX_DECIMALS
    yield "expected_top1 does not follow from p_beaten and p_tied", made & far
    hit = table["hit"].to_numpy()
    yield "a hit, although all distractors rank higher", hit & (beaten == 1)
    yield (
        "no hit, although no distractor ranks as high",
        made & ~hit & (table["expected_top1"] == 1).to_numpy(),
    )
    for name, known in (
        ("adjective_first", True),
        ("adjusted_first", part.adjustment(judge) is not None),
    ):
        first, adjectives = table[name].to_numpy(), table["adjectives"].to_numpy()
        places = np.round(1 / np.where(first > 0, first, 1))
        possible = (first == 0) | (np.abs(first * places - 1) < adjectives * SIX_DECIMALS) & (
            places <= adjectives
        )
        none, choice = np.isnan(first), known & (adjectives > 1)
        yield (
            f"{name} is not a chance among the prompt's adjectives",
            np.where(none, choice, ~possible | ~choice),
        )
    yield (
        "adjective_chosen does not follow from adjective_first",
        wrongly_chosen(part, split, table),
    )


def wrongly_chosen(part: ReleasePart, split: str, table: pd.DataFrame) -> np.ndarray:
    """Return which entries (n,) name an adjective that was not offered, or another one than
    ``adjective_first``.
    """
    variants = part.tables["variants"]
    entry, variant = variants_of_entries(prompts_of(part, split), split, variants)
    offered = set(zip(entry.tolist(), variants["adjective"].iloc[variant], strict=True))
    own = [None if pd.isna(pair) else split_pair(pair)[0] for pair in table["pair"]]
    has_choice = (table["similarity"].notna() & (table["adjectives"] > 1)).to_numpy()
    wrong = np.zeros(len(table), bool)
    for row, (first, chosen) in enumerate(
        zip(table["adjective_first"], table["adjective_chosen"], strict=True)
    ):
        if not has_choice[row]:
            wrong[row] = not pd.isna(chosen)
        elif first > 0:
            wrong[row] = chosen != own[row]
        else:
            wrong[row] = (row, chosen) not in offered
    return wrong


def set_faults(part: ReleasePart, scores: SubmittedScores) -> Iterator[str]:
    """Yield each contradiction between the sets of a split."""
    first = dict[str, str]()
    for each, split, _ in sets_of(part):
        same = first.setdefault(split, each)
        for name in OF_SPLIT:
            if scores.values[each][name] != scores.values[same][name]:  # type: ignore[literal-required]
                yield f"{each}: {name} differs from that of {same}, which has the same images"


def inconsistent(release: Release, submission: Submission) -> Iterator[str]:
    """Yield each inconsistency of a submission's values and figures."""
    for name, part in release.parts.items():
        for judge, scores in submission.compositions[name].judges.items():
            for each, split, _ in sets_of(part):
                names = prompts_of(part, split)["file_name"]
                for fault, rows in entry_faults(part, split, judge, scores.values[each]):
                    if rows.any():
                        more = f" ({rows.sum()} entries)" if rows.sum() > 1 else ""
                        yield f"{name}, judge {judge}, {each}: {names[rows].iloc[0]}: {fault}{more}"
            yield from (f"{name}, judge {judge}, {line}" for line in set_faults(part, scores))
    judges = {name: of.judges for name, of in submission.compositions.items()}
    yield from unequal_figures(submission.scores, figures_of(release, submission.name, judges))


def unequal_figures(given: Sequence[Any], computed: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each figure of a submission that differs from that computed from its values."""
    if len(given) != len(computed):
        yield f"scores: {len(given)} rows, {len(computed)} follow from the values"
        return
    for a, b in zip(given, computed, strict=True):
        where = ", ".join(str(b[key]) for key in FIGURE if b[key] is not None)
        for key in b:
            if not equal(a[key], b[key]):
                yield f"scores: {where}: {key} is {a[key]}, {b[key]} follows from the values"


def equal(a: Any, b: Any, tolerance: float = SIX_DECIMALS) -> bool:
    """Return whether two JSON values are equal, numbers within ``tolerance``."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return abs(a - b) <= tolerance if numbers else a == b


def unequal_values(
    where: str, given: Mapping[str, Any], computed: Mapping[str, Any], names: pd.Series, same: bool
) -> tuple[list[str], list[str]]:
    """Return the differences of a set's values from those computed from the images, and near ties.

    Args:
        names: (n,) file_name of each entry.
        same: whether processor and packages are the same, so that values must be equal.
    """
    a, b = as_numbers(given), as_numbers(computed)
    is_similarity = np.array(MEASURED) == "similarity"
    tolerances = np.where(is_similarity, SIMILARITY, SIX_DECIMALS) * (not same)
    far = ~np.isclose(a, b, rtol=0, atol=tolerances, equal_nan=True)
    ties = far.any(axis=1) & ~far[:, is_similarity].any(axis=1) & (not same)
    if ties.sum() > NEAR_TIES * len(names):
        ties[:] = False
    far[ties] = False
    lines = []
    for column, name in enumerate(MEASURED):
        if (rows := far[:, column]).any():
            first, more = int(rows.argmax()), f" ({rows.sum()} entries)" if rows.sum() > 1 else ""
            values = f"{given[name][first]} submitted, {computed[name][first]} computed"
            lines.append(f"{where}: {names.iloc[first]}: {name}: {values}{more}")
    return lines, [f"{where}: {name}" for name in names[ties]]


def as_numbers(values: Mapping[str, Any]) -> pd.DataFrame:
    """Return the values of a set as numbers; equal adjectives are equal numbers."""
    table = pd.DataFrame(values)
    codes = [
        None if pd.isna(name) else zlib.crc32(str(name).encode())
        for name in values["adjective_chosen"]
    ]
    return table.assign(adjective_chosen=codes).astype(dict.fromkeys(MEASURED, float))


def unequal_images(given: Mapping[str, str], actual: Mapping[str, str]) -> Iterator[str]:
    """Yield a line if images differ from the submitted ones."""
    if others := [name for name in given if given[name] != actual[name]]:
        first = others[0]
        states = f"{given[first][:12]} submitted, {actual[first][:12]} found"
        yield f"{len(others)} images are not those submitted, the first {first}: {states}"


def unequal_scores(
    release: Release, submission: Submission, computed: Mapping[str, ScoresByJudge], same: bool
) -> tuple[list[str], list[str]]:
    """Return the differences of all values from those computed from the images, and near ties."""
    lines, ties = list[str](), list[str]()
    for name, part in release.parts.items():
        for judge, scores in submission.compositions[name].judges.items():
            own = computed[name][judge]
            for each, split, _ in sets_of(part):
                where, names = (
                    f"{name}, judge {judge}, {each}",
                    prompts_of(part, split)["file_name"],
                )
                found = unequal_values(
                    where, {**scores.values[each]}, {**own.values[each]}, names, same
                )
                lines, ties = lines + found[0], ties + found[1]
            for place, controls in own.controls.items():
                given: dict[str, Any] = {**scores.controls[place]}
                lines += [
                    f"{name}, judge {judge}, {place}: {key}: {given[key]} submitted, {value} "
                    "computed"
                    for key, value in controls.items()
                    if not equal(given[key], value, 0 if same else NEAR_TIES)
                ]
    return lines, ties


def main(command: VerifySubmission) -> None:
    is_recorded = command.record is not None and command.images is None
    require(
        not is_recorded,
        "--record",
        "only a submission that is verified by its images is recorded",
        "add --images",
    )
    release = open_release(command.release)
    submission = read_submission(command.submission, release)
    lines, ties = list(inconsistent(release, submission)), list[str]()
    same = submission.environment == environment()
    if command.images is not None and not lines:
        pictures = all_pictures(release, command.images)
        for name, of in pictures.items():
            lines += [
                f"{name}: {line}"
                for line in unequal_images(submission.compositions[name].images, of.digests)
            ]
        if not lines:
            computed = score_parts(release, pictures, command.device, command.cache)
            lines, ties = unequal_scores(release, submission, computed, same)
    for line in lines:
        print(f"difference: {line}")
    if lines:
        raise SystemExit(1)
    for tie in ties[:LISTED]:
        print(f"near tie: {tie}")
    if command.images is None:
        print(
            f"consistent: all figures of {submission.name} follow from its values. "
            f"{UNPROVEN_VALUES} {UNPROVEN_ORIGIN}"
        )
        return
    how = (
        "exactly"
        if same
        else f"within rounding (similarities within {SIMILARITY}, {len(ties)} near ties)"
    )
    print(
        f"verified: all values and figures of {submission.name} follow from its images {how}. "
        f"{UNPROVEN_ORIGIN}"
    )
    if command.record:
        known = read_verified(command.record) if command.record.exists() else {}
        known[sha256(command.submission)] = VerifiedSubmission(
            name=submission.name, release=release.digest
        )
        write_json({digest: of.model_dump() for digest, of in known.items()}, command.record)
