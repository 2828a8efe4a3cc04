"""Answers are read from every source, and faulty ones are named."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.human.exported import annotation, export_task
from workflow_scripts.core.errors import UserError
from workflow_scripts.human.answers import collect, fault

KINDS = {"t1": "perceptual", "t2": "match", "t3": "caption"}
GOOD = {"task_id": "t1", "worker": "w-1", "answer": "2", "seconds": 3.5, "revision": 0}
# The columns of a results file, as the site writes them.
SITE = (
    "HITId HITTypeId Title Description Keywords Reward CreationTime MaxAssignments RequesterAnnotation"
    " AssignmentDurationInSeconds AutoApprovalDelayInSeconds Expiration NumberOfSimilarHITs LifetimeInSeconds"
    " AssignmentId WorkerId AssignmentStatus AcceptTime SubmitTime AutoApprovalTime ApprovalTime RejectionTime"
    " RequesterFeedback WorkTimeInSeconds LifetimeApprovalRate Last30DaysApprovalRate Last7DaysApprovalRate"
).split()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"task_id": "t2", "answer": "no"}, None),
        ({"seconds": 0}, None),
        ({"task_id": "t9"}, "unknown task_id"),
        ({"task_id": ["t1"]}, "unknown task_id"),
        ({"answer": "yes"}, "answer: expected 1 or 2"),
        ({"answer": 1}, "answer: expected 1 or 2"),
        ({"answer": None}, "answer: expected 1 or 2"),
        ({"worker": ""}, "worker"),
        ({"worker": "a b"}, "worker"),
        ({"worker": "x" * 65}, "worker"),
        ({"worker": "../x"}, "worker"),
        ({"seconds": -1}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": float("inf")}, "seconds"),
        ({"seconds": "3"}, "seconds"),
        ({"seconds": True}, "seconds"),
        ({"revision": -1}, "revision"),
        ({"revision": 1.0}, "revision"),
        ({"revision": False}, "revision"),
    ],
)
def test_fault(change: dict[str, Any], reason: str | None) -> None:
    problem = fault(GOOD | change, KINDS)
    assert problem is None if reason is None else reason in str(problem)


def _lines(path: Path, *records: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


def test_lines(tmp_path: Path) -> None:
    path = _lines(
        tmp_path / "a.jsonl", GOOD, GOOD, GOOD | {"answer": "1", "revision": 1, "seconds": 5},
        GOOD | {"task_id": "t2", "answer": "maybe"}, GOOD | {"task_id": "elsewhere"}, '{"task_id": "t1", "wor',
        GOOD | {"worker": "w-0"}, '"x"', json.dumps(GOOD).replace("3.5", "Infinity"),
    )  # fmt: skip
    table, counts, problems = collect([path], KINDS)
    assert table.to_dict("records") == [
        {"task_id": "t1", "worker": "w-0", "answer": "2", "seconds": 3.5},
        {"task_id": "t1", "worker": "w-1", "answer": "1", "seconds": 5.0},
    ]
    assert counts == {
        "records": 9, "twice": 1, "changed later": 1, "of other tasks": 1, "unreadable, rejected or wrong": 4
    }  # fmt: skip
    assert "line 4: answer: expected yes or no" in " ".join(problems) and "line 6: not JSON" in " ".join(problems)
    assert any(p.endswith("line 8: is no object") for p in problems)
    assert any("line 9: seconds: expected a number from 0" in p for p in problems)


def test_order_of_files_does_not_matter_for_revisions(tmp_path: Path) -> None:
    one = _lines(tmp_path / "1.jsonl", GOOD | {"revision": 1, "answer": "1"})
    two = _lines(tmp_path / "2.jsonl", GOOD)
    assert collect([one, two], KINDS)[0].equals(collect([two, one], KINDS)[0])
    _, counts, _ = collect([two, _lines(tmp_path / "3.jsonl", GOOD | {"answer": "1"})], KINDS)
    assert counts["contradicts another"] == 1


def _site(path: Path, columns: list[str], *rows: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*SITE, "Input.task_id", "Input.picture_1", *columns, "Approve", "Reject"],
                                restval="", quoting=csv.QUOTE_ALL)  # fmt: skip
        writer.writeheader()
        writer.writerows(rows)
    return path


ROW = {"WorkerId": "A1BCD", "WorkTimeInSeconds": "27", "AssignmentStatus": "Submitted", "Input.task_id": "t1"}


def test_site_results(tmp_path: Path) -> None:
    path = _site(
        tmp_path / "Batch_1_batch_results.csv",
        ["Answer.choice"],
        ROW | {"Answer.choice": "2"},
        ROW | {"Answer.choice": "1", "WorkerId": "A2", "AssignmentStatus": "Rejected"},
        ROW | {"Answer.choice": "", "WorkerId": "A3"},
        ROW | {"Answer.choice": "no", "Input.task_id": "t2", "WorkerId": "A3", "AssignmentStatus": "Approved"},
        ROW | {"Answer.choice": "2", "WorkerId": "A4", "WorkTimeInSeconds": "soon"},
    )
    table, counts, problems = collect([path], KINDS)
    assert table.to_dict("records") == [
        {"task_id": "t1", "worker": "A1BCD", "answer": "2", "seconds": 27.0},
        {"task_id": "t2", "worker": "A3", "answer": "no", "seconds": 27.0},
    ]
    assert counts["unreadable, rejected or wrong"] == 3
    assert [p.split(": ", 1)[1] for p in problems] == [
        "line 3: rejected", "line 4: answer: expected 1 or 2", "line 6: seconds: expected a number from 0 to 86400"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "answers"),
    [
        ({"Answer.choice.1": "false", "Answer.choice.2": "true"}, ["2"]),
        ({"Answer.choice.1": "FALSE", "Answer.choice.2": "TRUE"}, ["2"]),
        ({"Answer.taskAnswers": '[{"choice":{"1":false,"2":true}}]'}, ["2"]),
        ({"Answer.taskAnswers": '[{"choice":"2"}]'}, ["2"]),
        ({"Answer.choice.1": "true", "Answer.choice.2": "true"}, []),
        ({"Answer.taskAnswers": "not JSON"}, []),
        ({"Answer.taskAnswers": '[{"other":1}]'}, []),
        ({"Answer.taskAnswers": "[]"}, []),
    ],
)
def test_site_radio_buttons_as_sites_write_them(tmp_path: Path, cells: dict[str, str], answers: list[str]) -> None:
    table, counts, _ = collect([_site(tmp_path / "r.csv", list(cells), ROW | cells)], KINDS)
    assert table["answer"].tolist() == answers and counts["unreadable, rejected or wrong"] == 1 - len(answers)


def test_another_csv_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no column Answer.choice"):
        collect([_site(tmp_path / "r.csv", ["Answer.else"], ROW)], KINDS)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="no column 'WorkerId'"):
        collect([tmp_path / "x.csv"], KINDS)
    with pytest.raises(UserError, match="no such file"):
        collect([tmp_path / "none.jsonl"], KINDS)


def _export(path: Path, *tasks: Any) -> Path:
    path.write_text(json.dumps(tasks))
    return path


def test_label_studio_export(tmp_path: Path) -> None:
    user = {"id": 12, "email": "ann@example.org", "first_name": "Ann", "last_name": "Lee"}
    path = _export(
        tmp_path / "project-3.json",
        export_task("t1", annotation("2", 11, 4.288), annotation("1", user)),
        export_task("t2", annotation("no", 11), annotation("no", 12, was_cancelled=True), annotation(None, 13)),
        export_task("t3"),
        export_task("of another study", annotation("1")),
        export_task(["t1"], annotation("1")),
        export_task("t3", annotation("3"), annotation("1", lead_time=None), annotation("1", user=None), "x", {}),
        {"id": 9, "data": {}, "annotations": 3},
        "not a task",
    )
    table, counts, problems = collect([path], KINDS)
    assert table.to_dict("records") == [
        {"task_id": "t1", "worker": "label_studio_11", "answer": "2", "seconds": 4.288},
        {"task_id": "t2", "worker": "label_studio_11", "answer": "no", "seconds": 3.5},
        {"task_id": "t1", "worker": "label_studio_12", "answer": "1", "seconds": 3.5},
    ]
    assert counts == {"records": 14, "of other tasks": 2, "unreadable, rejected or wrong": 9}
    foreign = "not an annotation of a project that compclip wrote"
    assert [problem.removeprefix(f"{path}: ") for problem in problems] == [
        "record 2, annotation 2: skipped by the worker", "record 2, annotation 3: answer: expected yes or no",
        "record 6, annotation 1: answer: expected 1 or 2",
        "record 6, annotation 2: seconds: expected a number from 0 to 86400",
        *(f"record 6, annotation {place}: {foreign}" for place in (3, 4, 5)),
        "record 7: not a task with annotations", "record 8: not a task with annotations",
    ]  # fmt: skip


def test_label_studio_answers_join_those_of_pages(tmp_path: Path) -> None:
    export = _export(tmp_path / "a.json", export_task("t1", annotation("2", 5), annotation("1", 5)))
    pages = tmp_path / "b.json"
    pages.write_text(json.dumps([GOOD]))
    table, counts, _ = collect([export, pages], KINDS)
    assert table["worker"].tolist() == ["label_studio_5", "w-1"] and table["answer"].tolist() == ["2", "2"]
    assert counts["contradicts another"] == 1


def test_label_studio_json_min_is_refused(tmp_path: Path) -> None:
    row = {"task_id": "t1", "id": 7, "choice": "2", "annotator": 1, "annotation_id": 1001, "lead_time": 3.5}
    with pytest.raises(UserError, match="JSON-MIN is not supported; export the project as JSON"):
        collect([_export(tmp_path / "min.json", row)], KINDS)
