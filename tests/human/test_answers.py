"""Answers are read from one form of CSV file, which Label Studio exports, and faulty ones are named."""

import csv
from pathlib import Path
from typing import Any

import pytest

from compclip.core.errors import UserError
from compclip.human.answers import collect
from tests.human.conftest import COLUMNS, written

KINDS = {"t1": "perceptual", "t2": "match", "t3": "caption"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("t1", "w-1", "2", 3.5), None),
        (("t2", "ann@example.org", "no", 0), None),
        (("t3", "12", "1", ""), None),
        (("t1", "w-1", "yes", 1), "choice: expected 1 or 2"),
        (("t1", "w-1", "", 1), "choice: expected 1 or 2"),
        (("t2", "w-1", '["yes", "no"]', 1), "choice: expected yes or no"),
        (("t1", "", "1", 1), "annotator: expected 1 to 64 letters"),
        (("t1", "a b", "1", 1), "annotator"),
        (("t1", "x" * 65, "1", 1), "annotator"),
        (("t1", "../x", "1", 1), "annotator"),
        (("t1", "w-1", "1", -1), "lead_time: expected a number from 0 to 86400"),
        (("t1", "w-1", "1", "inf"), "lead_time"),
        (("t1", "w-1", "1", "soon"), "lead_time"),
    ],
)
def test_a_row_is_read_or_its_fault_named(tmp_path: Path, row: tuple[Any, ...], reason: str | None) -> None:
    path = written(tmp_path / "a.csv", ("t2", "w-9", "yes", 1), row)
    table, counts, problems = collect([path], KINDS)
    assert len(table) == 1 + (reason is None) and counts["wrong"] == len(problems) == (reason is not None)
    assert reason is None or problems[0].startswith(f"{path}: row 2: {reason}")


def test_the_first_answer_of_a_worker_counts(tmp_path: Path) -> None:
    one = written(tmp_path / "1.csv", ("t1", "w", "2", 3.5), ("t1", "w", "2", 9), ("elsewhere", "w", "2", 1))
    two = written(tmp_path / "2.csv", ("t1", "w", "1"), ("t1", "v", "1"), columns=COLUMNS[:3])
    table, counts, problems = collect([one, two], KINDS)
    assert table.fillna(-1).values.tolist() == [["t1", "v", "1", -1], ["t1", "w", "2", 3.5]]
    assert counts == {"records": 5, "of other tasks": 1, "twice": 1, "contradicts another": 1} and not problems
    assert list(table) == ["task_id", "worker", "answer", "seconds"]


def test_label_studio_export(tmp_path: Path) -> None:
    """As label-studio-sdk 2.1 writes it (converter/exports/csv2.py): sorted columns, quoted, with all task data."""
    picture = "data:image/png;base64," + "iVBO" * 100_000
    rows = [
        {"id": 7, "task_id": "t1", "picture_1": picture, "annotator": "1", "choice": "2", "lead_time": 4.288},
        {"id": 8, "task_id": "t2", "picture_1": picture, "annotator": "ann@example.org", "choice": "no"},
    ]
    always = {"annotation_id": 1001, "created_at": "2026-03-09T22:16:08Z", "updated_at": "2026-03-09T22:16:09Z"}
    with (tmp_path / "project-3.csv").open("w", encoding="utf8") as file:
        names = sorted({*rows[0], *always, "text_1"})
        writer = csv.DictWriter(file, fieldnames=names, quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows({**always, "text_1": "a red\nbird", **row} for row in rows)
    table, _, problems = collect([tmp_path / "project-3.csv"], KINDS)
    assert table.fillna(-1).values.tolist() == [["t1", "1", "2", 4.288], ["t2", "ann@example.org", "no", -1]]
    assert not problems


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,b\n1,2\n", "no column task_id, annotator, choice; export the answers"),
        (b"task_id,choice\n1,2\n", "no column annotator"),
        (b"", "not a readable CSV file"),
        (b"task_id,annotator,choice\n\xff,1,2\n", "not a readable CSV file"),
        (b'[{"task_id": "t1"}]', "no column"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(UserError, match=reason):
        collect([tmp_path / "x.csv"], KINDS)
    with pytest.raises(UserError, match="not a readable CSV file"):
        collect([tmp_path / "none.csv"], KINDS)
