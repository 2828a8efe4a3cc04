"""Tasks, their pages and table, and the tasks of their Label Studio projects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from compclip.core.cache import key
from compclip.core.seeds import rng
from compclip.human.pictures import broken, drawn, read_picture
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
        return broken(image, rng(seed, "sample_tasks", self.broken_by)) if self.broken_by else image


@dataclass(frozen=True)
class Task:
    """A task that is not on a page yet."""

    kind: str
    pictures: tuple[Picture, ...]
    texts: tuple[str, ...] = ()
    check: str = "none"
    of: "Task | None" = None
    right: str | None = None
    prompt: Mapping[str, Any] = field(default_factory=dict)
    generators: tuple[str, ...] = ()

    def reversed(self) -> "Task":
        """Return the task with its sides in reverse order; a yes-or-no task has only one side."""
        right = self.right and str(len(ALL_KINDS[self.kind].answers) + 1 - int(self.right))
        pictures, texts, generators = self.pictures[::-1], self.texts[::-1], self.generators[::-1]
        return replace(self, pictures=pictures, texts=texts, generators=generators, right=right)


Page = list[Task]
# Numbers of gold tasks that are added to each page, and of tasks that are repeated on it.
GOLD, REPEATS = 2, 2


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
    pages, count = [], -(-len(tasks) // size)
    for number in range(count):
        page = list(tasks[number::count])
        checks = [gold(page, f"{number + 1} {i}") for i in range(GOLD)]
        order = [page[i] for i in generator.permutation(len(page))]
        repeated = sorted(generator.permutation(len(order) // 2)[:REPEATS])
        asked_again = [replace(order[i].reversed(), check="repeat", of=order[i]) for i in repeated]
        for task in checks:
            order.insert(int(generator.integers(1, len(order) + 1)), task)
        for task in asked_again:
            order.insert(int(generator.integers(-(-2 * len(order) // 3), len(order) + 1)), task)
        pages.append(order)
    return pages


def check_counts(pages: Sequence[Page]) -> dict[str, int]:
    return {
        "pages": len(pages),
        **{check: sum(t.check == check for page in pages for t in page) for check in CHECKS},
    }


def task_table(
    pages: Mapping[str, Sequence[Page]], files: Mapping[Picture, str], study: Sequence[str | int]
) -> pd.DataFrame:
    """Return the columns of ``TASKS``; ``study`` distinguishes these tasks from another run's.

    A task's name, which does not reveal its content, depends on the page, the place, the pictures
    and the texts.
    """
    rows = []
    for kind, of_kind in pages.items():
        for batch, page in enumerate(of_kind, 1):
            names: dict[int, str] = {}
            for place, task in enumerate(page, 1):
                pictures = [files[picture] for picture in task.pictures]
                digits = key(*study, "task", kind, batch, place, *pictures, *task.texts).hex()[:15]
                # A letter first: a spreadsheet reads 12e4 as a number.
                names[id(task)] = f"t{digits}"
                row = dict.fromkeys(TASKS.columns) | {
                    name: task.prompt.get(name) for name in PROMPT_COLUMNS
                }
                for column, values in (
                    ("generator", task.generators),
                    ("picture", pictures),
                    ("text", task.texts),
                ):
                    row |= {f"{column}_{i}": value for i, value in enumerate(values, 1)}
                row |= {"task_id": names[id(task)], "of": names[id(task.of)] if task.of else None}
                row |= {
                    "kind": kind,
                    "check": task.check,
                    "batch": batch,
                    "place": place,
                    "right": task.right,
                }
                rows.append(row)
    table = pd.DataFrame(rows, columns=list(TASKS.columns))
    return table.astype({name: column.dtype for name, column in TASKS.columns.items()})


def project_tasks(tasks: pd.DataFrame, pictures: Path, consent: str | None) -> list[dict[str, Any]]:
    """Return the project's tasks of one kind, in order, with only the task's name and what is
    shown.

    The text of consent is in each task's data, because Label Studio replaces a ``$`` in the
    configuration.
    """
    columns = shown_columns(tasks["kind"].iloc[0])
    return [
        {
            "data": {"task_id": row["task_id"]}
            | ({"consent": consent} if consent else {})
            | {
                name: data_uri((pictures / row[name]).read_bytes())
                if name.startswith("picture")
                else row[name]
                for name in columns
            }
        }
        for row in tasks.sort_values(["batch", "place"]).to_dict("records")
    ]
