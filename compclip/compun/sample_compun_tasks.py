"""Make tasks for people: which of three pictures shows a compound.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), appendix
A.6.
"""

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.seeds import rng
from compclip.core.tables import ROLES
from compclip.human.study import Page, Picture, Task, make_pages
from compclip.human.task_pictures import drawn_text, random_drawings

KIND = "compound"
PAGE_TASKS = 40  # tasks between checks


def compound_gold_task(generator: np.random.Generator) -> Task:
    """Return a task with a known answer: find one of three drawn shapes."""
    drawings = random_drawings(generator)
    number = int(generator.integers(3))
    pictures = tuple(Picture(drawing=drawing) for drawing in drawings)
    text = drawn_text(*drawings[number])
    return Task(KIND, pictures, (text,), check="gold", right=str(number + 1))


def sample_compun_tasks(
    compounds: pd.DataFrame, images: pd.DataFrame, *, seed: int = 0
) -> list[Page]:
    """Return the pages of a study, with a task for each complete compound, in a random order.

    Its own picture is at each of the three places equally often, up to one.
    """
    names = compounds.loc[compounds["complete"], "compound"].to_numpy()
    require(len(names), "compounds", f"none of {len(compounds)} is complete", "add their images")
    generator = rng(seed, "sample_compun_tasks", KIND)
    names = names[generator.permutation(len(names))]
    paths = images.set_index(["compound", "role"])["path"]
    tasks = []
    positions = generator.permutation(np.arange(len(names)) % 3)
    for name, position in zip(names, positions, strict=True):
        distractors = generator.permutation([1, 2])
        roles = [ROLES[number] for number in np.insert(distractors, position, 0)]
        pictures = tuple(Picture(paths[name, role]) for role in roles)
        # People answer with the number of a picture, from 1.
        right = str(position + 1)
        tasks.append(Task(KIND, pictures, (name,), right=right, prompt={"image_id": name}))
    generator = rng(seed, "sample_compun_tasks", KIND, "pages")
    return make_pages(
        tasks, PAGE_TASKS, lambda page, stream: compound_gold_task(generator), generator
    )
