"""People's answers: from the pages' files, from a crowd-work site's results, or from a Label Studio export."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core.documents import decode, parse_json
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.records import read_records
from workflow_scripts.human.tasks import ALL_KINDS

WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
# seconds: time that the task was visible; revision: how often the worker changed this answer, from 0.
FIELDS = ("task_id", "worker", "answer", "seconds", "revision")
MAX_SECONDS = 86_400  # beyond a day the page was left open
MAX_REVISIONS = 10_000
# Sites write the answers of radio buttons in one column, or in one column for each value.
SITE_VALUES = sorted({value for kind in ALL_KINDS.values() for value in kind.answers})
SITE_COLUMNS = ("WorkerId", "WorkTimeInSeconds", "Input.task_id")
SITE_CHOICES = ("Answer.choice", *(f"Answer.choice.{value}" for value in SITE_VALUES), "Answer.taskAnswers")
CHOICE = "choice"  # name of the control in Label Studio's labeling configuration

Record = dict[str, Any]
# Where each answer is, and its record of FIELDS, unchecked, or why it does not count.
Rows = list[tuple[str, Record | str]]


def fault(record: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    """Return what is wrong with an answer, which has FIELDS, or None; ``kinds`` has the kind of each task_id."""
    task, worker, answer, seconds, revision = (record[name] for name in FIELDS)
    if not isinstance(task, str) or task not in kinds:
        return "unknown task_id"
    if not isinstance(worker, str) or not WORKER.fullmatch(worker):
        return "worker: expected 1 to 64 letters, digits, _ . @ or -"
    allowed = ALL_KINDS[kinds[task]].answers
    if answer not in allowed:
        return f"answer: expected {' or '.join(allowed)}"
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not math.isfinite(seconds) or not 0 <= seconds <= MAX_SECONDS:
        return f"seconds: expected a number from 0 to {MAX_SECONDS}"
    if not isinstance(revision, int) or isinstance(revision, bool) or not 0 <= revision <= MAX_REVISIONS:
        return f"revision: expected an integer from 0 to {MAX_REVISIONS}"
    return None


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _page_rows(path: Path) -> Rows:
    table, unreadable = read_records(path, FIELDS)
    rows: Rows = [(str(path), reason) for reason in unreadable]
    for row in table.to_dict("records"):
        revision = int(row["revision"]) if str(row["revision"]).isdecimal() else None
        record = {name: row[name] for name in FIELDS} | {"seconds": _number(row["seconds"]), "revision": revision}
        rows.append((f"{path}: {row['where']}", record))
    return rows


def _site_choice(row: Mapping[str, Any]) -> str | None:
    """Return the value of a row's radio button, in any of the ways in which sites write it."""
    if row.get("Answer.choice"):
        return str(row["Answer.choice"])
    chosen = [v for v in SITE_VALUES if str(row.get(f"Answer.choice.{v}") or "").lower() == "true"]
    if not chosen and row.get("Answer.taskAnswers"):
        try:
            (form,) = parse_json(row["Answer.taskAnswers"])
            values = form["choice"]
            chosen = [values] if isinstance(values, str) else [v for v, on in values.items() if on is True]
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
    return chosen[0] if len(chosen) == 1 else None


def _site_rows(path: Path) -> Rows:
    """Read a site's results, a row for each assignment."""
    table, unreadable = read_records(path, SITE_COLUMNS, ("AssignmentStatus", *SITE_CHOICES))
    if not set(SITE_CHOICES) & set(table):
        raise UserError(f"{path}: no column Answer.choice; use the results of a batch that was posted with the layout")
    rows: Rows = [(str(path), reason) for reason in unreadable]
    for row in table.to_dict("records"):
        seconds = _number(row["WorkTimeInSeconds"])
        record = dict(zip(FIELDS, (row["Input.task_id"], row["WorkerId"], _site_choice(row), seconds, 0), strict=True))
        rejected = row.get("AssignmentStatus") == "Rejected"
        rows.append((f"{path}: {row['where']}", "rejected" if rejected else record))
    return rows


def _exported_tasks(path: Path) -> list[Any] | None:
    """Return the tasks of a Label Studio export; None if the file is something else."""
    try:
        content = parse_json(decode(path)) if path.is_file() else None
    except ValueError:
        return None
    keys = {key for row in content if isinstance(row, dict) for key in row} if isinstance(content, list) else set()
    if "annotation_id" in keys:
        raise UserError(f"{path}: Label Studio's format JSON-MIN is not supported; export the project as JSON")
    return content if "annotations" in keys else None


def _annotation(task: Any, annotation: Any) -> Record | str:
    """Return the record of an annotation in a Label Studio export, or why it does not count."""
    try:
        if annotation.get("was_cancelled"):
            return "skipped by the worker"
        results = [result["value"]["choices"] for result in annotation["result"] if result["from_name"] == CHOICE]
        user = annotation["completed_by"]
        user_id = int(user["id"] if isinstance(user, dict) else user)
        answer = results[0][0] if [len(choices) for choices in results] == [1] else None
        values = (task["data"]["task_id"], f"label_studio_{user_id}", answer, annotation["lead_time"], 0)
        return dict(zip(FIELDS, values, strict=True))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return "not an annotation of a project that compclip wrote"


def _label_studio_rows(path: Path, tasks: Sequence[Any]) -> Rows:
    rows: Rows = []
    for number, task in enumerate(tasks, 1):
        annotations = task.get("annotations") if isinstance(task, dict) else None
        if not isinstance(annotations, list):
            rows.append((f"{path}: record {number}", "not a task with annotations"))
            continue
        rows += [
            (f"{path}: record {number}, annotation {place}", _annotation(task, annotation))
            for place, annotation in enumerate(annotations, 1)
        ]
    return rows


def read_answers(path: Path) -> Rows:
    """Return the answers of a file: a site's ``.csv``, a Label Studio ``.json``, or what the pages save."""
    if path.suffix.lower() == ".csv":
        return _site_rows(path)
    if path.suffix.lower() == ".json" and (tasks := _exported_tasks(path)) is not None:
        return _label_studio_rows(path, tasks)
    return _page_rows(path)


def collect(files: Sequence[Path], kinds: Mapping[str, str]) -> tuple[pd.DataFrame, Counter[str], list[str]]:
    """Read files of answers and keep the last answer of each worker to each task.

    Of two answers of the same revision, from a site or from two browsers, the first in the files counts. Answers to
    tasks that are not in ``kinds`` are skipped.

    Returns:
        The answers, with FIELDS except revision, sorted by worker and task; counts of all records and of those that
        were skipped, by reason; and what is wrong with each record that has a fault.
    """
    last: dict[tuple[str, str], Record] = {}
    counts, problems = Counter[str](), []
    for where, record in (row for path in files for row in read_answers(path)):
        counts["records"] += 1
        if not isinstance(record, str) and not (isinstance(record["task_id"], str) and record["task_id"] in kinds):
            counts["of other tasks"] += 1
            continue
        reason = record if isinstance(record, str) else fault(record, kinds)
        if reason or isinstance(record, str):
            counts["unreadable, rejected or wrong"] += 1
            problems.append(f"{where}: {reason}")
            continue
        name = (record["worker"], record["task_id"])
        before = last.setdefault(name, record)
        if before is record:
            continue
        if record["revision"] > before["revision"]:
            counts["changed later"] += 1
            last[name] = record
        elif record["answer"] == before["answer"]:
            counts["twice"] += 1
        else:
            counts["changed later" if record["revision"] < before["revision"] else "contradicts another"] += 1
    table = pd.DataFrame([last[name] for name in sorted(last)], columns=list(FIELDS)).drop(columns="revision")
    return table, counts, problems
