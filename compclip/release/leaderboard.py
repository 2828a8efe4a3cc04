"""Compare the submissions of a release on a page: a single file that can sort, filter and compare
them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.cli import Command
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.tables import TESTS
from compclip.plot.labels import SPLIT_NAMES
from compclip.plot.page import render, write_page
from compclip.release.released import Release, ReleasePart, open_release
from compclip.release.submission import Submission, compare_submissions, look, read_submission
from compclip.release.verify import inconsistent, read_verified
from compclip.report import verdicts
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.measures import COMPARED
from compclip.report.rows import main_rows, of_kind, pivot
from compclip.report.verdicts import SEEN_SKILL, composed_of
from compclip.stats.estimates import ENDS

VALUE_AND_ENDS = ("value", *ENDS)
# columns of a difference on the page
DIFFERENCE_COLUMNS = [
    "a",
    "b",
    "split",
    "measure",
    "difference",
    *ENDS,
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


def submission_files(places: list[Path]) -> list[Path]:
    """Return the files of submissions; UserError if one of ``places`` has none."""
    files = list[Path]()
    for place in places:
        found = [place] if place.is_file() else sorted(place.rglob("submission*.json"))
        require(found, place, "no submission.json", "give the folder of a submission")
        files += found
    return list(dict.fromkeys(files))


def read_submissions(files: list[Path], release: Release) -> dict[Path, Submission]:
    """Read all submissions; UserError if one is inconsistent or two have the same name."""
    submissions = dict[Path, Submission]()
    for file in files:
        submission = read_submission(file, release)
        same = [
            other for other, of in submissions.items() if look(of.name) == look(submission.name)
        ]
        fault = (
            f"has the same name ({submission.name}) as {same[0] if same else ''}, or one that "
            "looks like it"
        )
        require(not same, file, fault, "rename one and submit it again")
        wrong = next(inconsistent(release, submission), "")
        require(not wrong, file, wrong, "remove it, or submit again")
        submissions[file] = submission
    return submissions


def _ends(row: Any) -> dict[str, float | None] | None:
    """Return a value with its intervals; None if there is none."""
    if row is None or pd.isna(row["value"]):
        return None
    return {end: None if pd.isna(row[end]) else row[end] for end in VALUE_AND_ENDS}


def lines_of(
    part: ReleasePart, scores: pd.DataFrame, training_data: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the page's lines for each generator of a composition: its verdict and its scores, by
    column.

    Args:
        training_data: what each submission's model was trained on, as told.
    """
    given = verdicts.verdicts(scores, part.about.anchors, part.health.is_fit, training_data)
    by_generator = {verdict.generator: verdict.verdict for verdict in given}
    lines = []
    for generator, rows in pivot(main_rows(scores).dropna(subset="generator")).items():
        cells = {
            "composes": _ends(composed_of(rows)),
            "draws seen pairs": _ends(rows.get(SEEN_SKILL)),
        }
        cells |= {
            f"composes, {SPLIT_NAMES[split]}": _ends(composed_of(rows, split))
            for split in HELDOUT_SPLITS
        }
        for measure, of in COMPARED.items():
            cells |= {
                f"{of.title}, {SPLIT_NAMES[split]}": _ends(rows.get((split, measure)))
                for split in TESTS
            }
        lines.append(
            {"name": generator, "verdict": by_generator.get(generator, ""), "cells": cells}
        )
    return lines


def differences_of(comparisons: pd.DataFrame) -> list[dict[str, Any]]:
    """Return all paired differences of a composition."""
    rows = of_kind(comparisons, "generators")[DIFFERENCE_COLUMNS]
    titles = {name: measure.title for name, measure in COMPARED.items()}
    rows = rows.assign(measure=rows["measure"].map(titles), split=rows["split"].map(SPLIT_NAMES))
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def leaderboard_data(
    release: Release, submissions: dict[Path, Submission], verified: set[str]
) -> dict[str, Any]:
    """Return the page's data as JSON values."""
    about = {
        of.name: {
            "judge_weights": of.judge_weights,
            "training_data": of.training_data,
            "verified": sha256(file) in verified,
        }
        for file, of in submissions.items()
    }
    compositions = {}
    for name, part in release.parts.items():
        given = [(of.name, of.compositions[name].judges) for of in submissions.values()]
        scores, comparisons, _ = compare_submissions(part, given)
        lines = lines_of(part, scores, {of.name: of.training_data for of in submissions.values()})
        for line in lines:
            line |= {"control": line["name"] in part.about.generators} | about.get(line["name"], {})
        compositions[name] = {"lines": lines, "differences": differences_of(comparisons)}
    return {"compositions": compositions}


def main(command: Leaderboard) -> None:
    release = open_release(command.release)
    submissions = read_submissions(submission_files(command.folders), release)
    known = read_verified(command.verified) if command.verified else {}
    verified = {digest for digest, of in known.items() if of.release == release.digest}
    data = leaderboard_data(release, submissions, verified)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    context = {
        "release": release,
        "submissions": len(submissions),
        "compositions": list(release.parts),
        "data": text,
    }
    write_page(render("leaderboard.html.j2", context), command.output)
    print(command.output)
