"""Compare the submissions of a release on a page: a single file that can sort, filter and compare
them.
"""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.errors import require
from compclip.core.identity.digests import sha256
from compclip.core.settings.cli import Command
from compclip.core.tables import HELD_OUT, HELD_OUT_SPLITS, TESTS
from compclip.plot.labels import SPLIT_NAMES
from compclip.plot.page import render, write_page
from compclip.release.open_release import Release, ReleasedTables, open_release
from compclip.release.submission import (
    REPEATS_IMAGES,
    Submission,
    compare_submissions,
    look,
    read_submission,
)
from compclip.release.verify import inconsistent, read_verified
from compclip.report import verdicts
from compclip.report.measures import COMPARED
from compclip.report.rows import Place, Row, main_rows, pivot, select_kind
from compclip.report.verdicts import SEEN_SKILL, composed_of
from compclip.stats.estimates import INTERVAL_COLUMNS

# Which pairs an interval on the page is for, as in the report: verdicts are about the same pairs.
SAME, NEW = "same pairs", "new pairs"
COMPOSES_NEW = f"composes, {NEW}"
# Columns of a difference on the page.
DIFFERENCE_COLUMNS = [
    "a",
    "b",
    "split",
    "measure",
    "difference",
    *INTERVAL_COLUMNS,
    "p",
    "p_holm",
    "family",
    "n",
]


class Leaderboard(Command):
    """Compare the submissions of a release on a self-contained page.

    Folders are searched for submission*.json. Intervals of what is composed are simultaneous over
    all submissions.
    """

    folders: CliPositionalArg[list[Path]] = Field(
        min_length=1, description="folders of submissions, or their files"
    )
    release: Path = Field(description="folder of the release")
    verified: Path | None = Field(
        None, description="JSON file that compclip verify --record has written"
    )
    output: Path = Field(Path("leaderboard.html"), description="the page")


def submission_files(paths: list[Path]) -> list[Path]:
    """Return the files of submissions; UserError if one of ``paths`` has none."""
    # Sorted, so that the page does not depend on the file system.
    files = list[Path]()
    for path in paths:
        path_files = [path] if path.is_file() else sorted(path.rglob("submission*.json"))
        require(path_files, path, "no submission.json", "give the folder of a submission")
        files += path_files
    return list(dict.fromkeys(files))


def read_submissions(files: list[Path], release: Release) -> dict[Path, Submission]:
    """Read all submissions; UserError if one is inconsistent or two have the same name."""
    submissions = dict[Path, Submission]()
    file_by_look = dict[str, Path]()
    for file in files:
        submission = read_submission(file, release)
        # Names that look alike could be taken for each other on the page.
        name_look = look(submission.name)
        same = file_by_look.setdefault(name_look, file)
        fault = f"has the same name ({submission.name}) as {same}, or one that looks like it"
        require(same == file, file, fault, "rename one and submit it again")
        # The first inconsistency; all of them are for ``compclip verify``.
        wrong = next(inconsistent(release, submission), "")
        require(not wrong, file, wrong, "remove it, or submit again")
        submissions[file] = submission
    return submissions


def columns_of_page() -> list[dict[str, str]]:
    """Return the columns of the page: name, table, and which pairs their intervals are for."""
    composed = ["draws seen pairs", "draws held-out pairs", "composes"]
    composed += [f"composes, {SPLIT_NAMES[split]}" for split in HELD_OUT_SPLITS]
    columns = [{"name": name, "table": "composed", "pairs": SAME} for name in composed]
    columns.append({"name": COMPOSES_NEW, "table": "composed", "pairs": NEW})
    for measure, split in product(COMPARED.values(), TESTS):
        name = f"{measure.title}, {SPLIT_NAMES[split]}"
        columns.append({"name": name, "table": "scores", "pairs": NEW})
    return columns


def _cell(row: Row | None, pairs: str) -> dict[str, float | None] | None:
    """Return a value with its interval for the same or for new pairs; None if there is none."""
    if row is None or pd.isna(row["value"]):
        return None
    prefix = pairs.replace(" ", "_")
    cell = {"value": row["value"], "low": row[f"{prefix}_low"], "high": row[f"{prefix}_high"]}
    # JSON has no NaN.
    return {key: None if pd.isna(number) else number for key, number in cell.items()}


def lines_of(
    composition: ReleasedTables, scores: pd.DataFrame, training_data: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the page's lines for each generator of a composition: its verdict and its scores, by
    column.

    Args:
        training_data: what each submission's model was trained on, as told.
    """
    anchors = composition.contents.anchors
    passes_bias_check = composition.bias_check.passes
    all_verdicts = verdicts.verdicts(scores, anchors, passes_bias_check, training_data)
    verdict_of = {verdict.generator: verdict.verdict for verdict in all_verdicts}
    lines = []
    # Divergences are of no generator.
    rows_by_generator = pivot(main_rows(scores).dropna(subset="generator"))
    for generator, rows in rows_by_generator.items():
        # Without an estimate, there is no verdict.
        verdict = verdict_of.get(generator, "")
        cells = _cells(rows)
        lines.append({"name": generator, "verdict": verdict, "cells": cells})
    return lines


def _cells(rows: Mapping[Place, Row]) -> dict[str, Any]:
    """Return a generator's values by column of the page."""
    composed = composed_of(rows)
    row_of = {"composes": composed, COMPOSES_NEW: composed}
    row_of["draws seen pairs"] = rows.get(SEEN_SKILL)
    row_of["draws held-out pairs"] = rows.get((HELD_OUT, "draws_held_out_pairs"))
    for split in HELD_OUT_SPLITS:
        row_of[f"composes, {SPLIT_NAMES[split]}"] = composed_of(rows, split)
    for measure, split in product(COMPARED, TESTS):
        row_of[f"{COMPARED[measure].title}, {SPLIT_NAMES[split]}"] = rows.get((split, measure))
    return {
        column["name"]: _cell(row_of[column["name"]], column["pairs"])
        for column in columns_of_page()
    }


def marks_of(submission: Submission, verified: bool) -> list[str]:
    """Return the marks beside the name of a submission."""
    training_mark = verdicts.TRAINING_MARKS.get(submission.training_data, "")
    marks = ["verified"] if verified else []
    if submission.judge_weights != "none":
        marks.append(submission.judge_weights)
    if training_mark:
        marks.append(training_mark)
    if submission.repeats_images:
        marks.append(REPEATS_IMAGES)
    return marks


def differences_of(comparisons: pd.DataFrame) -> list[dict[str, Any]]:
    """Return all paired differences of a composition."""
    rows = select_kind(comparisons, "generators")[DIFFERENCE_COLUMNS]
    titles = {name: measure.title for name, measure in COMPARED.items()}
    measure = rows["measure"].map(titles)
    split = rows["split"].map(SPLIT_NAMES)
    rows = rows.assign(measure=measure, split=split)
    # JSON has no NaN; objects, because columns of numbers have no None.
    values = rows.astype(object).where(rows.notna(), None)
    return values.to_dict("records")


def leaderboard_data(
    release: Release, submissions: dict[Path, Submission], verified: set[str]
) -> dict[str, Any]:
    """Return the page's data as JSON values."""
    statements = {}
    for file, submission in submissions.items():
        is_verified = sha256(file) in verified
        statements[submission.name] = {
            "judge_weights": submission.judge_weights,
            "verified": is_verified,
            "marks": marks_of(submission, is_verified),
        }
    training_data = {
        submission.name: submission.training_data for submission in submissions.values()
    }
    compositions = {}
    for name, composition in release.parts.items():
        by_judge = [
            (submission.name, submission.compositions[name].judges)
            for submission in submissions.values()
        ]
        # All at once, since intervals of what is composed are simultaneous over the submissions.
        tables = compare_submissions(composition, by_judge)
        lines = lines_of(composition, tables.scores, training_data)
        for line in lines:
            line["control"] = line["name"] in composition.contents.generators
            # Controls state nothing.
            line.update(statements.get(line["name"], {"marks": ["control"]}))
        differences = differences_of(tables.comparisons)
        compositions[name] = {"lines": lines, "differences": differences}
    return {"columns": columns_of_page(), "compositions": compositions}


def main(command: Leaderboard) -> None:
    release = open_release(command.release)
    submissions = read_submissions(submission_files(command.folders), release)
    # A submission may have been verified for another version of the release.
    records = read_verified(command.verified) if command.verified else {}
    verified = {digest for digest, record in records.items() if record.release == release.digest}
    data = leaderboard_data(release, submissions, verified)
    # A name with </script> must not end the page's script.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    context = {
        "release": release,
        "submissions": len(submissions),
        "compositions": list(release.parts),
        "data": text,
    }
    write_page(render("leaderboard.html.j2", context), command.output)
    print(command.output)
