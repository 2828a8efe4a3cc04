"""Make tasks about compounds for people: which of three pictures shows it, and is it hard to tell them apart?

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), appendix A.6.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.seeds import rng
from compclip.core.tables import ROLES
from compclip.human.pictures import drawn_text, random_drawings
from compclip.human.study import GOLD, Page, Picture, Task, with_checks

PAGE_TASKS = 40  # tasks between checks


def named_pictures(names: Sequence[str]) -> str:
    """Return the names below three pictures: ``1: cheesecake, 2: cheese, 3: cake``."""
    return ", ".join(f"{number}: {name}" for number, name in enumerate(names, 1))


def order_places(n: int, generator: np.random.Generator) -> np.ndarray:
    """Return (n, 3) random orders of three pictures; the first one is at each place equally often, up to one."""
    place = generator.permutation(np.arange(n) % 3)
    orders = np.empty((n, 3), int)
    for row, first in enumerate(place):
        others = iter(generator.permutation([1, 2]))
        orders[row] = [0 if i == first else next(others) for i in range(3)]
    return orders


def study_tasks(compounds: pd.DataFrame, images: pd.DataFrame, kind: str, seed: int) -> list[Task]:
    """Return a task for each complete compound of COMPOUNDS, in a random order."""
    generator = rng(seed, "sample_compun_tasks", kind)
    complete = compounds[compounds["complete"]]
    complete = complete.iloc[generator.permutation(len(complete))]
    orders = order_places(len(complete), generator)
    paths = images.set_index(["compound", "role"])["path"]
    tasks = []
    for row, order in zip(complete.itertuples(), orders, strict=True):
        pictures = tuple(Picture(paths[row.compound, role]) for role in ROLES)
        prompt = {"image_id": row.compound}
        if kind == "compound":
            shuffled = tuple(pictures[i] for i in order)
            right = str(list(order).index(0) + 1)
            tasks.append(Task(kind, shuffled, (row.compound,), right=right, prompt=prompt))
        else:
            nouns = [noun if isinstance(noun, str) else "a part of its name" for noun in (row.n1, row.n2)]
            tasks.append(Task(kind, pictures, (named_pictures([row.compound, *nouns]),), prompt=prompt))
    return tasks


def compound_gold_task(kind: str, generator: np.random.Generator) -> Task:
    """Return a task of drawn shapes: find one of three; or tell three different, or three equal ones apart."""
    drawings = random_drawings(generator)
    pictures = tuple(Picture(drawing=drawing) for drawing in drawings)
    names = [drawn_text(*drawing) for drawing in drawings]
    number = int(generator.integers(3))
    if kind == "compound":
        return Task(kind, pictures, (names[number],), check="gold", right=str(number + 1))
    confusing = number == 0
    shown, right = (pictures[:1] * 3, "yes") if confusing else (pictures, "no")
    return Task(kind, shown, (named_pictures(names),), check="gold", right=right)


def sample_compun_tasks(
    compounds: pd.DataFrame, images: pd.DataFrame, *, kinds: Sequence[str] = ("compound",), seed: int = 0
) -> dict[str, list[Page]]:
    """Return the pages of each kind, with a task for each complete compound; ``kinds`` are of ``COMPOUND_KINDS``."""
    require(compounds["complete"].any(), "compounds", f"none of {len(compounds)} is complete", "add their images")
    pages: dict[str, list[Page]] = {}
    for kind in kinds:
        tasks, generator = study_tasks(compounds, images, kind, seed), rng(seed, "sample_compun_tasks", kind, "pages")
        number, pages[kind] = -(-len(tasks) // PAGE_TASKS), []
        for first in range(number):
            gold = [compound_gold_task(kind, generator) for _ in range(GOLD)]
            pages[kind].append(with_checks(tasks[first::number], gold, generator))
    return pages
