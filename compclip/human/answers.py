"""People's answers: CSV files with a row for each answer, from Label Studio or any other tool.

The columns are ``task_id``; ``annotator``, any name of the worker; ``choice``, the answer; and
optionally ``lead_time``, in seconds. Other columns are ignored.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from compclip.core.errors import UserError, one_line, require
from compclip.core.reading.normal import tidy_id
from compclip.human.tasks import ALL_KINDS

WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}")
ANSWER_COLUMNS = {
    "task_id": "task_id",
    "annotator": "worker",
    "choice": "answer",
    "lead_time": "seconds",
}
MAX_SECONDS = 86_400  # a day: the task was left open


def read_answers(path: Path) -> pd.DataFrame:
    """Return texts in the columns task_id, worker, answer and seconds (NaN if unknown), and where
    each row is.
    """
    try:
        table = pd.read_csv(
            path,
            usecols=lambda name: tidy_id(name) in ANSWER_COLUMNS,
            dtype=str,
            keep_default_na=False,
        )
    except (OSError, ValueError) as error:
        fault = f"not a readable CSV file ({one_line(error)})"
        raise UserError(f"{path}: {fault}; export the answers as CSV") from error
    # Texts of spreadsheets may have invisible characters and blanks.
    table = table.map(tidy_id).rename(columns=tidy_id)
    required = [name for name in ANSWER_COLUMNS if name != "lead_time"]
    missing = [name for name in required if name not in table]
    fault = f"no column {', '.join(missing)}"
    require(not missing, path, fault, "export the answers of one project as CSV")
    table = table.rename(columns=ANSWER_COLUMNS)
    numbers = range(1, len(table) + 1)
    table["where"] = [f"{path}: row {number}" for number in numbers]
    no_texts = pd.Series("", table.index)
    texts = table.get("seconds", no_texts)
    seconds = pd.to_numeric(texts, errors="coerce")
    is_no_number = seconds.isna() & (texts != "")
    # ``answer_fault`` refuses -1.
    table["seconds"] = seconds.mask(is_no_number, -1.0)
    return table


def answer_fault(answer: str, worker: str, seconds: float, kind: str) -> str | None:
    """Return the fault of an answer to a task of this kind, or None."""
    allowed = ALL_KINDS[kind].answers
    if not WORKER.fullmatch(worker):
        return "annotator: expected 1 to 64 letters, digits, _ . @ + or -"
    if answer not in allowed:
        return f"choice: expected {' or '.join(allowed)}"
    if seconds < 0 or seconds > MAX_SECONDS:
        return f"lead_time: expected a number from 0 to {MAX_SECONDS}"
    return None


def collect(
    files: Sequence[Path], kinds: Mapping[str, str]
) -> tuple[pd.DataFrame, Counter[str], list[str]]:
    """Read files of answers and keep the first answer of each worker to each task.

    ``kinds`` has the kind of each task_id; answers to other tasks are skipped.

    Returns:
        The answers (task_id, worker, answer, seconds), sorted by worker and task; counts of all and
        of skipped records, by reason; and the fault of each faulty record.
    """
    counts = Counter[str]()
    tables = [read_answers(path) for path in files]
    table = pd.concat(tables, ignore_index=True)
    counts["records"] = len(table)
    is_task = table["task_id"].isin(kinds)
    counts["of other tasks"] = int((~is_task).sum())
    table = table[is_task]
    is_valid = []
    problems = []
    for row in table.itertuples():
        fault = answer_fault(row.answer, row.worker, row.seconds, kinds[row.task_id])
        is_valid.append(fault is None)
        if fault is not None:
            problems.append(f"{row.where}: {fault}")
    table = table[np.array(is_valid, bool)]
    # In the order of the files and of their rows.
    first = table.groupby(["worker", "task_id"])["answer"].transform("first")
    is_repeated = table.duplicated(["worker", "task_id"])
    is_equal = table["answer"] == first
    counts["wrong"] = len(problems)
    counts["twice"] = int((is_repeated & is_equal).sum())
    counts["contradicts another"] = int((~is_equal).sum())
    answers = table[~is_repeated].sort_values(["worker", "task_id"], ignore_index=True)
    columns = list(ANSWER_COLUMNS.values())
    # Without the reasons that do not occur.
    return answers[columns], +counts, problems
