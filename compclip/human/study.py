"""Tasks, their pages and table, and the tasks of their Label Studio projects."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from compclip.core.identity.cache import key
from compclip.core.seeds import rng
from compclip.human.task_pictures import broken, drawn, read_picture
from compclip.human.tasks import ALL_KINDS, CHECKS, PROMPT_COLUMNS, TASKS, shown_columns
from compclip.plot.page import data_uri


@dataclass(frozen=True)
class Picture:
    """A picture to show.

    Attributes:
        path: its file, relative to the study's folder of images.
        broken_by: name of the random stream that shuffles its tiles; None shows it whole.
        drawing: color and shape of a drawn picture, which has no file.
    """

    path: str = ""
    broken_by: str | None = None
    drawing: tuple[str, str] | None = None

    def image(self, folder: Path, seed: int) -> Image.Image:
        """Return the picture; raises UserError if its file cannot be read."""
        if self.drawing:
            return drawn(*self.drawing)
        image = read_picture(folder / self.path)
        if self.broken_by is None:
            return image
        return broken(image, rng(seed, "sample_tasks", self.broken_by))


@dataclass(frozen=True)
class Task:
    """A task that is not on a page yet.

    Attributes:
        repeat_of: the task that is asked again, of a check ``repeat``.
        right: the correct answer, None if there is none.
        prompt: has ``PROMPT_COLUMNS``; empty for gold tasks.
    """

    kind: str
    pictures: tuple[Picture, ...]
    texts: tuple[str, ...] = ()
    check: str = "none"
    repeat_of: "Task | None" = None
    right: str | None = None
    prompt: Mapping[str, Any] = field(default_factory=dict)
    generators: tuple[str, ...] = ()

    def reversed(self) -> "Task":
        """Return the task with its sides in reverse order; a yes-or-no task has only one side."""
        right = self.right
        if right is not None:
            # Answers are numbered from 1.
            right = str(len(ALL_KINDS[self.kind].answers) + 1 - int(right))
        return replace(
            self,
            pictures=self.pictures[::-1],
            texts=self.texts[::-1],
            generators=self.generators[::-1],
            right=right,
        )


Page = list[Task]
# Gold tasks that are added to each page, and tasks that are repeated on it.
GOLD = 2
REPEATS = 2


def make_pages(
    tasks: Sequence[Task],
    size: int,
    gold: Callable[[Page, str], Task],
    generator: np.random.Generator,
) -> list[Page]:
    """Distribute tasks over as few pages as possible, in random order, and add gold tasks and
    repeats.

    Gold tasks are anywhere but first. Tasks of the first half are repeated, with their sides
    reversed, in the last third.

    Args:
        size: number of tasks on a page, without gold tasks and repeats.
        gold: makes a task with a known answer for a page, given the page's tasks and a name that no
            other one has.
    """
    pages = []
    count = math.ceil(len(tasks) / size)
    for number in range(count):
        # Every count-th task, so that each page has tasks from the whole sequence.
        page = list(tasks[number::count])
        gold_tasks = [gold(page, f"{number + 1} {i}") for i in range(GOLD)]
        order = [page[i] for i in generator.permutation(len(page))]
        # Of the first half, so that other tasks are between a task and its repeat.
        repeated = sorted(generator.permutation(len(order) // 2)[:REPEATS])
        repeats = [
            replace(order[i].reversed(), check="repeat", repeat_of=order[i]) for i in repeated
        ]
        for task in gold_tasks:
            # Not first: a page begins with a task of the study.
            position = int(generator.integers(1, len(order) + 1))
            order.insert(position, task)
        for task in repeats:
            # The page has grown, so the last third is another one each time.
            last_third = math.ceil(2 * len(order) / 3)
            position = int(generator.integers(last_third, len(order) + 1))
            order.insert(position, task)
        pages.append(order)
    return pages


def check_counts(pages: Sequence[Page]) -> dict[str, int]:
    """Return the numbers of pages and, by check, of their tasks."""
    counts = Counter(task.check for page in pages for task in page)
    return {"pages": len(pages), **{check: counts[check] for check in CHECKS}}


def task_table(
    pages: Mapping[str, Sequence[Page]], files: Mapping[Picture, str], study: Sequence[str | int]
) -> pd.DataFrame:
    """Return the columns of ``TASKS``; ``study`` distinguishes these tasks from another run's.

    A task's name, which does not reveal its content, depends on the page, the place, the pictures
    and the texts.
    """
    rows = []
    for kind, kind_pages in pages.items():
        for batch, page in enumerate(kind_pages, 1):
            # By identity: a repeat has the task that it repeats, which is before it on the page.
            names = {}
            for position, task in enumerate(page, 1):
                pictures = [files[picture] for picture in task.pictures]
                content = [*pictures, *task.texts]
                digits = key(*study, "task", kind, batch, position, *content).hex()[:15]
                # A letter first: a spreadsheet reads 12e4 as a number.
                names[id(task)] = f"t{digits}"
                row = _task_row(task, pictures)
                row |= {"task_id": names[id(task)], "batch": batch, "place": position}
                if task.repeat_of is not None:
                    row["of"] = names[id(task.repeat_of)]
                rows.append(row)
    # Columns that a kind does not use are null.
    table = pd.DataFrame(rows, columns=list(TASKS.columns))
    return table.astype({name: column.dtype for name, column in TASKS.columns.items()})


def _task_row(task: Task, pictures: Sequence[str]) -> dict[str, Any]:
    """Return the columns of ``TASKS`` that do not depend on the page."""
    row = {name: task.prompt.get(name) for name in PROMPT_COLUMNS}
    row |= {"kind": task.kind, "check": task.check, "right": task.right}
    row |= _numbered("generator", task.generators)
    row |= _numbered("picture", pictures)
    row |= _numbered("text", task.texts)
    return row


def _numbered(column: str, values: Sequence[str]) -> dict[str, str]:
    return {f"{column}_{number}": value for number, value in enumerate(values, 1)}


def project_tasks(tasks: pd.DataFrame, pictures: Path, consent: str | None) -> list[dict[str, Any]]:
    """Return the project's tasks of one kind, in order, with only the task's name and what is
    shown.

    The text of consent is in each task's data, because Label Studio replaces a ``$`` in the
    configuration.
    """
    columns = shown_columns(tasks["kind"].iloc[0])
    project = []
    for row in tasks.sort_values(["batch", "place"]).to_dict("records"):
        data = {"task_id": row["task_id"]}
        if consent:
            data["consent"] = consent
        for name in columns:
            if name.startswith("picture"):
                # As a data URI, so that the project needs no other files.
                data[name] = data_uri((pictures / row[name]).read_bytes())
            else:
                data[name] = row[name]
        project.append({"data": data})
    return project
