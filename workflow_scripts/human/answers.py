"""What people answered: one record an answer, from the server, from downloaded files, or from a site's results CSV."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.records import read_records
from workflow_scripts.human.tasks import ALL_KINDS

WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
FIELDS = ("task_id", "worker", "answer", "seconds", "revision")
# Beyond it somebody left the page open.
DAY = 86_400
MOST_REVISIONS = 10_000
# Answers of a site's radio buttons: one column, or one for each value, as the site's own form elements write them.
SITE_VALUES = sorted({value for kind in ALL_KINDS.values() for value in kind.answers})
SITE = ("WorkerId", "WorkTimeInSeconds", "Input.task_id")
SITE_CHOICES = ("Answer.choice", *(f"Answer.choice.{value}" for value in SITE_VALUES), "Answer.taskAnswers")


def fault(record: Any, kinds: Mapping[str, str]) -> str | None:
    """What is wrong with an answer; None where nothing is. kinds: the kind of each task_id.

    A record is ``{"task_id", "worker", "answer", "seconds", "revision"}``: revision counts from 0 how often the
    worker changed this answer; seconds are those that the task was looked at.
    """
    if not isinstance(record, dict) or set(record) != set(FIELDS):
        return f"an answer has the fields {', '.join(FIELDS)}"
    task, worker, answer, seconds, revision = (record[name] for name in FIELDS)
    if not isinstance(task, str) or task not in kinds:
        return "unknown task_id"
    if not isinstance(worker, str) or not WORKER.fullmatch(worker):
        return "worker: 1 to 64 letters, digits, _ . @ or -"
    allowed = ALL_KINDS[kinds[task]].answers
    if answer not in allowed:
        return f"answer: {' or '.join(allowed)}"
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not math.isfinite(seconds) or not 0 <= seconds <= DAY:
        return f"seconds: a number from 0 to {DAY}"
    if not isinstance(revision, int) or isinstance(revision, bool) or not 0 <= revision <= MOST_REVISIONS:
        return f"revision: a whole number from 0 to {MOST_REVISIONS}"
    return None


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _site_choice(row: Mapping[str, Any]) -> str | None:
    """The chosen value of a row of a site's results, in any of the ways that sites write a radio button."""
    if row.get("Answer.choice"):
        return str(row["Answer.choice"])
    chosen = [v for v in SITE_VALUES if str(row.get(f"Answer.choice.{v}") or "").lower() == "true"]
    if not chosen and row.get("Answer.taskAnswers"):
        try:
            (form,) = json.loads(row["Answer.taskAnswers"])
            values = form["choice"]
            chosen = [values] if isinstance(values, str) else [v for v, on in values.items() if on is True]
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
    return chosen[0] if len(chosen) == 1 else None


def read_file(path: Path) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """``(where, record)`` for each answer of a file, unchecked, and what could not be read.

    ``.csv``: a site's results, of which rejected assignments are left out by name. Else: JSON lines or a JSON list.
    """
    if path.suffix.lower() != ".csv":
        table, bad = read_records(path, FIELDS)
        return [
            (
                f"{path}: {row['where']}",
                {
                    "task_id": row["task_id"],
                    "worker": row["worker"],
                    "answer": row["answer"],
                    "seconds": _number(row["seconds"]),
                    "revision": int(row["revision"]) if str(row["revision"]).isdecimal() else None,
                },
            )
            for row in table.to_dict("records")
        ], [f"{path}: {reason}" for reason in bad]
    table, bad = read_records(path, SITE, ("AssignmentStatus", *SITE_CHOICES))
    if not set(SITE_CHOICES) & set(table):
        raise UserError(
            f"{path}: no column Answer.choice: is it the results of a batch that was posted with the layout?"
        )
    problems = [f"{path}: {reason}" for reason in bad]
    found = []
    for row in table.to_dict("records"):
        where = f"{path}: {row['where']}"
        if row.get("AssignmentStatus") == "Rejected":
            problems.append(f"{where}: rejected")
            continue
        record = {
            "task_id": row["Input.task_id"],
            "worker": row["WorkerId"],
            "answer": _site_choice(row),
            "seconds": _number(row["WorkTimeInSeconds"]),
            "revision": 0,
        }
        found.append((where, record))
    return found, problems


def collect(files: Sequence[Path], kinds: Mapping[str, str]) -> tuple[pd.DataFrame, Counter[str], list[str]]:
    """The last answer of each worker to each task (columns ``FIELDS`` without revision), sorted by worker and task.

    Also counts the records that were left out, and says each of those that were wrong. An answer that stands in two
    files counts once. kinds: the kind of each task_id of the study; other studies' answers are left out.
    """
    last: dict[tuple[str, str], dict[str, Any]] = {}
    counts, problems = Counter[str](), []
    for path in files:
        rows, bad = read_file(path)
        counts["records"] += len(rows) + len(bad)
        if bad:
            counts["unreadable, rejected or wrong"] += len(bad)
        problems += bad
        for where, record in rows:
            if record["task_id"] not in kinds:
                counts["of other tasks"] += 1
                continue
            reason = fault(record, kinds)
            if reason:
                counts["unreadable, rejected or wrong"] += 1
                problems.append(f"{where}: {reason}")
                continue
            name = (record["worker"], record["task_id"])
            before = last.get(name)
            if before is None:
                last[name] = record
            elif record["revision"] > before["revision"]:
                counts["changed later"] += 1
                last[name] = record
            elif record["answer"] == before["answer"]:
                counts["twice"] += 1
            else:
                # Of two answers of one revision, on a site or in two browsers, the first in the files counts.
                counts["changed later" if record["revision"] < before["revision"] else "contradicts another"] += 1
    table = pd.DataFrame([last[name] for name in sorted(last)], columns=list(FIELDS)).drop(columns="revision")
    return table, counts, problems
