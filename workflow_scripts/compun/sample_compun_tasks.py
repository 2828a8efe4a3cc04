"""Ask people what models are asked: which of three pictures shows the compound? And, of new lists: is it confusing?

Tasks, pages, server and answers are those of stage human, and so are the checks on each page: tasks with a known
answer, of drawn shapes, and tasks that are asked again with the pictures in another order. The pages come from
``python -m workflow_scripts.human.write_pages``, what was answered is said by ``compun.analyze_people``.

``compound`` tasks measure human accuracy; in ``confusing`` ones the pictures have their names below, and people say
whether these are hard to tell apart, which the benchmark's makers asked three people before all else.
Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), appendix A.6.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cache import key
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_table, write_json, write_table
from workflow_scripts.core.progress import track
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import COMPOUND_IMAGES, COMPOUNDS, ROLES
from workflow_scripts.human.config import Kind
from workflow_scripts.human.cost import hourly, kind_cost
from workflow_scripts.human.pictures import COLORS, SHAPES, drawn_text, encode
from workflow_scripts.human.sample_tasks import Picture, Task, image_of, table_of, with_checks
from workflow_scripts.human.tasks import CHECKS, COMPOUND_KINDS, TASKS


def named_pictures(names: Sequence[str]) -> str:
    """What stands below three pictures with names: ``1: cheesecake, 2: cheese, 3: cake``."""
    return ", ".join(f"{number}: {name}" for number, name in enumerate(names, 1))


def order_places(n: int, generator: np.random.Generator) -> np.ndarray:
    """(n, 3) orders of three pictures: the first of them stands equally often, up to one, at each place."""
    place = generator.permutation(np.arange(n) % 3)
    orders = np.empty((n, 3), int)
    for row, at in enumerate(place):
        others = iter(generator.permutation([1, 2]))
        orders[row] = [0 if i == at else next(others) for i in range(3)]
    return orders


def study_tasks(compounds: pd.DataFrame, images: pd.DataFrame, kind: str, seed: int) -> list[Task]:
    """A task for each complete compound, in an order drawn by seed. Columns of COMPOUNDS and of COMPOUND_IMAGES."""
    generator = rng(seed, "sample_compun_tasks", kind)
    whole = compounds[compounds["complete"]]
    whole = whole.iloc[generator.permutation(len(whole))]
    orders = order_places(len(whole), generator)
    paths = images.set_index(["compound", "role"])["path"]
    tasks = []
    for row, order in zip(whole.itertuples(), orders, strict=True):
        pictures = [Picture(paths[row.compound, role]) for role in ROLES]
        about = {"image_id": row.compound}
        if kind == "compound":
            shown = tuple(pictures[i] for i in order)
            right = str(list(order).index(0) + 1)
            tasks.append(Task(kind, shown, (row.compound,), right=right, prompt=about))
        else:
            nouns = [noun if isinstance(noun, str) else "a part of its name" for noun in (row.n1, row.n2)]
            tasks.append(Task(kind, tuple(pictures), (named_pictures([row.compound, *nouns]),), prompt=about))
    return tasks


def gold_task(kind: str, generator: np.random.Generator) -> Task:
    """A task of drawn shapes: which of three is it; or three that are told apart, or one thrice."""
    colors, shapes = generator.permutation(list(COLORS)).tolist(), generator.permutation(SHAPES).tolist()
    looks = list(zip(colors, shapes, strict=True))
    pictures = tuple(Picture(drawing=look) for look in looks)
    names = [drawn_text(*look) for look in looks]
    at = int(generator.integers(3))
    if kind == "compound":
        return Task(kind, pictures, (names[at],), check="gold", right=str(at + 1))
    if at == 0:
        return Task(kind, pictures[:1] * 3, (named_pictures(names),), check="gold", right="yes")
    return Task(kind, pictures, (named_pictures(names),), check="gold", right="no")


def plan(tasks: Sequence[Task], size: int, gold: int, repeats: int, seed: int) -> list[list[Task]]:
    """Pages of about the same length, at most ``size`` tasks of the study and the checks."""
    kind = tasks[0].kind
    generator = rng(seed, "sample_compun_tasks", kind, "pages")
    pages = -(-len(tasks) // size)
    return [
        with_checks(tasks[page::pages], [gold_task(kind, generator) for _ in range(gold)], repeats, generator)
        for page in range(pages)
    ]


def main(options: argparse.Namespace) -> None:
    compounds, images = read_table(options.compounds, COMPOUNDS), read_table(options.images, COMPOUND_IMAGES)
    if not compounds["complete"].any():
        raise UserError(f"{options.compounds}: none of {len(compounds)} compounds is complete: get their images")
    pages = {
        kind: plan(
            study_tasks(compounds, images, kind, options.seed),
            options.batch,
            options.gold,
            options.repeats,
            options.seed,
        )
        for kind in dict.fromkeys(options.kinds)
    }
    study = (options.seed, "compun")
    files: dict[Picture, str] = {}
    with atomic_folder(options.pictures) as folder:
        shown = dict.fromkeys(p for of in pages.values() for page in of for task in page for p in task.pictures)
        for picture in track(shown, len(shown), "pictures"):
            raw, suffix = encode(image_of(picture, options.folder, options.seed))
            files[picture] = f"{key(*study, raw).hex()[:16]}.{suffix}"
            (folder / files[picture]).write_bytes(raw)
    write_table(table_of(pages, files, study), options.output, TASKS)
    summary = {
        "seed": options.seed,
        "compounds": int(compounds["complete"].sum()),
        "incomplete": int((~compounds["complete"]).sum()),
        "kinds": {},
    }
    for kind, of_kind in pages.items():
        tasks = [task for page in of_kind for task in page]
        price = Kind(pay=options.pay, seconds=options.seconds)
        cost = kind_cost(len(tasks), price, options.workers, None)
        counts = {check: sum(task.check == check for task in tasks) for check in CHECKS}
        summary["kinds"][kind] = {"pages": len(of_kind), **counts, "cost": cost}
        log.info(
            "%s: %d tasks on %d pages x %d people: $%.2f pay, %.1f hours, $%.2f an hour", kind, len(tasks),
            len(of_kind), options.workers, cost["pay"], cost["hours"], hourly(options.pay, options.seconds),
        )  # fmt: skip
    write_json(summary, options.summary)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--compounds", type=Path, required=True, help="compounds.parquet")
    parser.add_argument("--images", type=Path, required=True, help="images.parquet")
    parser.add_argument("--folder", type=Path, required=True, help="the folder of images, from which its paths start")
    parser.add_argument("--kinds", nargs="+", choices=tuple(COMPOUND_KINDS), default=["compound"])
    parser.add_argument("--batch", type=int, default=40, help="compounds of a page, without the checks")
    parser.add_argument("--gold", type=int, default=2, help="tasks with a known answer added to each page")
    parser.add_argument("--repeats", type=int, default=2, help="tasks of a page that are asked twice")
    parser.add_argument("--workers", type=int, default=3, help="people who answer each task, for the cost")
    parser.add_argument("--pay", type=float, default=0.02, help="dollars for an answer")
    parser.add_argument("--seconds", type=float, default=6, help="that an answer is expected to take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="tasks.parquet")
    parser.add_argument("--pictures", type=Path, required=True, help="folder of the pictures that are shown")
    parser.add_argument("--summary", type=Path, required=True, help="tasks.json: counts and the cost")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
