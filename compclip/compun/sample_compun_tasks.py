"""Make tasks for people: which of three pictures shows a compound.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), appendix A.6.
"""

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.seeds import rng
from compclip.core.tables import ROLES
from compclip.human.pictures import drawn_text, random_drawings
from compclip.human.study import GOLD, Page, Picture, Task, with_checks

KIND = "compound"
PAGE_TASKS = 40  # tasks between checks


def order_places(n: int, generator: np.random.Generator) -> np.ndarray:
    """Return (n, 3) random orders of three pictures; the first is at each place equally often, up to one."""
    place = generator.permutation(np.arange(n) % 3)
    orders = np.empty((n, 3), int)
    for row, first in enumerate(place):
        others = iter(generator.permutation([1, 2]))
        orders[row] = [0 if i == first else next(others) for i in range(3)]
    return orders


def study_tasks(compounds: pd.DataFrame, images: pd.DataFrame, seed: int) -> list[Task]:
    """Return a task for each complete compound of COMPOUNDS, in a random order."""
    generator = rng(seed, "sample_compun_tasks", KIND)
    complete = compounds[compounds["complete"]]
    complete = complete.iloc[generator.permutation(len(complete))]
    orders = order_places(len(complete), generator)
    paths = images.set_index(["compound", "role"])["path"]
    tasks = []
    for row, order in zip(complete.itertuples(), orders, strict=True):
        pictures = tuple(Picture(paths[row.compound, ROLES[i]]) for i in order)
        right = str(list(order).index(0) + 1)
        tasks.append(Task(KIND, pictures, (row.compound,), right=right, prompt={"image_id": row.compound}))
    return tasks


def compound_gold_task(generator: np.random.Generator) -> Task:
    """Return a task with a known answer: find one of three drawn shapes."""
    drawings = random_drawings(generator)
    number = int(generator.integers(3))
    pictures = tuple(Picture(drawing=drawing) for drawing in drawings)
    return Task(KIND, pictures, (drawn_text(*drawings[number]),), check="gold", right=str(number + 1))


def sample_compun_tasks(compounds: pd.DataFrame, images: pd.DataFrame, *, seed: int = 0) -> list[Page]:
    """Return the pages of a study, with a task for each complete compound."""
    require(compounds["complete"].any(), "compounds", f"none of {len(compounds)} is complete", "add their images")
    tasks, generator = study_tasks(compounds, images, seed), rng(seed, "sample_compun_tasks", KIND, "pages")
    number = -(-len(tasks) // PAGE_TASKS)
    return [
        with_checks(tasks[first::number], [compound_gold_task(generator) for _ in range(GOLD)], generator)
        for first in range(number)
    ]
