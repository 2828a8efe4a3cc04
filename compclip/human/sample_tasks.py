"""Sample tasks for people from a scored run, balanced over splits and generators.

Perceptual tasks show two generators' images of one prompt side by side. Tasks of correctness show
one image, with its caption to agree with (match), or with its caption and another one (caption).
Seen captions are those that were swapped, if there are any, so that seen and swapped tasks are
about the same captions. Each page gets tasks with a known answer, and repeats some of its own.
Interface: appendix 1.2, figures 1 to 3.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.human.config import Sampling
from compclip.human.pictures import drawn_text, random_drawings
from compclip.human.study import Page, Picture, Task, make_pages
from compclip.human.tasks import KINDS, PROMPT_COLUMNS

# Prompts of a cell that are compared per wanted task, because two generators may make the same
# image.
COMPARED_PER_TASK = 4
TASKS_PER_PAGE = 20  # tasks between checks


def in_turns(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Shuffle rows so that each image, and likewise each pair, occurs once before any occurs
    twice.
    """
    mixed = rows.iloc[generator.permutation(len(rows))]
    image = mixed.groupby("image_id").cumcount()
    pair = mixed.groupby([image, mixed["pair"].fillna("")]).cumcount()
    return mixed.iloc[np.lexsort((np.arange(len(mixed)), pair, image))]


def allot(sizes: Sequence[int], total: int, generator: np.random.Generator) -> list[int]:
    """Return how many of ``total`` tasks each cell gives: equal numbers, up to its size; the
    remainder is drawn.
    """
    given = np.zeros(len(sizes), int)
    while (left := min(total, sum(sizes)) - int(given.sum())) > 0:
        open_cells = np.flatnonzero(given < sizes)
        given[
            open_cells
            if len(open_cells) <= left
            else generator.choice(open_cells, left, replace=False)
        ] += 1
    return given.tolist()


class Cell(NamedTuple):
    """The possible tasks of a kind, a split and one or two generators, in order of use."""

    split: str
    generators: tuple[str, ...]
    tasks: list[Task]


def correctness_cells(
    kind: str, entries: pd.DataFrame, seed: int
) -> tuple[list[Cell], Counter[str]]:
    """Return a cell for each split and generator, and counts of skipped images; ``entries`` as in
    ``entries_of``.
    """
    cells, skipped = [], Counter[str]()
    if kind == "caption":
        skipped["no other caption"] += int(entries["other"].isna().sum())
        entries = entries[entries["other"].notna()]
    for (split, name), rows in entries.groupby(["split", "generator"]):
        tasks = []
        for row in in_turns(rows, rng(seed, "sample_tasks", kind, split, name)).to_dict("records"):
            texts, right = (
                ((row["text"],), None) if kind == "match" else ((row["text"], row["other"]), "1")
            )
            tasks.append(
                Task(
                    kind,
                    (Picture(row["path"]),),
                    texts,
                    right=right,
                    prompt=row,
                    generators=(name,),
                )
            )
        cells.append(Cell(split, (name,), tasks))
    return cells, skipped


def perceptual_cells(
    entries: pd.DataFrame, wanted: int, content: Callable[[str], str], seed: int
) -> tuple[list[Cell], Counter[str]]:
    """Return a cell for each split and pair of generators with images of the same prompts, and
    counts of skips.

    ``content`` hashes a file's bytes; two equal images give no task.
    """
    cells, skipped = [], Counter[str]()
    for split, of_split in entries.groupby("split"):
        by_generator = dict(tuple(of_split.groupby("generator")))
        for a, b in combinations(sorted(by_generator), 2):
            others = by_generator[b][[*PROMPT_COLUMNS, "path"]]
            both = by_generator[a].merge(others, on=PROMPT_COLUMNS, suffixes=("", "_b"))
            # enough for the cell even if it must replace all others
            rows = in_turns(both, rng(seed, "sample_tasks", "perceptual", split, a, b)).head(
                COMPARED_PER_TASK * wanted
            )
            tasks = []
            for row in rows.to_dict("records"):
                if content(row["path"]) == content(row["path_b"]):
                    skipped["two generators' images are the same"] += 1
                else:
                    pictures = (Picture(row["path"]), Picture(row["path_b"]))
                    tasks.append(Task("perceptual", pictures, prompt=row, generators=(a, b)))
            cells.append(Cell(split, (a, b), tasks))
    return cells, skipped


def gold_task(
    kind: str, real: Mapping[str, str], generator: np.random.Generator, page: Page, stream: str
) -> Task:
    """Return a task with a known answer: an image beside its shuffled tiles, or a drawn shape and a
    wrong text.

    The image is the real one, if there is one in ``real``, of a task on the page; ``stream`` names
    the random stream that shuffles its tiles.
    """
    like = page[int(generator.integers(len(page)))]
    first = bool(generator.integers(2))
    if kind == "perceptual":
        source = real.get(like.prompt["image_id"], like.pictures[0].path)
        task = Task(
            kind,
            (Picture(source), Picture(source, broken_by=f"{kind} {stream}")),
            check="gold",
            right="1",
        )
        return task if first else task.reversed()
    drawings = random_drawings(generator)
    true, false = (drawn_text(*drawing) for drawing in drawings[:2])
    picture = (Picture(drawing=drawings[0]),)
    if kind == "match":
        return Task(
            kind, picture, (true if first else false,), check="gold", right="yes" if first else "no"
        )
    task = Task(kind, picture, (true, false), check="gold", right="1")
    return task if first else task.reversed()


def sample_tasks(
    entries: pd.DataFrame,
    real: Mapping[str, str],
    content: Callable[[str], str],
    sampling: Sampling,
    seed: int = 0,
) -> tuple[dict[str, list[Page]], list[dict[str, Any]], Counter[str]]:
    """Sample the tasks of each kind and distribute them over pages; raises UserError if there are
    none.

    Args:
        entries: as from ``entries_of``.
        real: each image_id's real image, for gold tasks.
        content: hashes a file's bytes.
        sampling: splits, and the number of tasks of each kind.
        seed: seed of every random choice.

    Returns:
        The pages of each kind; the numbers of chosen and possible tasks of each cell; and why
        images were skipped.
    """
    pages_of, given, all_skipped = dict[str, list[Page]](), list[dict[str, Any]](), Counter[str]()
    for kind in KINDS:
        wanted = getattr(sampling, kind)
        if not wanted:
            continue
        if kind == "perceptual":
            cells, skipped = perceptual_cells(entries, wanted, content, seed)
        else:
            cells, skipped = correctness_cells(kind, entries, seed)
        all_skipped.update(skipped)
        generator, turns = rng(seed, "sample_tasks", kind), list[tuple[int, Task]]()
        for cell, n in zip(
            cells, allot([len(cell.tasks) for cell in cells], wanted, generator), strict=True
        ):
            # the sides of every other task are reversed
            reverse = generator.permutation(np.arange(n) % 2).astype(bool)
            turns += enumerate(
                task.reversed() if r else task
                for task, r in zip(cell.tasks[:n], reverse, strict=True)
            )
            about = {"kind": kind, "split": cell.split, "generators": list(cell.generators)}
            given.append({**about, "tasks": n, "of": len(cell.tasks)})
        # each cell is spread over all pages
        order = [turns[i] for i in generator.permutation(len(turns))]
        dealt = [task for _, task in sorted(order, key=lambda item: item[0])]
        pages_of[kind] = make_pages(
            dealt, TASKS_PER_PAGE, partial(gold_task, kind, real, generator), generator
        )
        if len(dealt) < wanted:
            log.warning("warning: %s: %d tasks of %d", kind, len(dealt), wanted)
    remedy = "see human.generators, human.splits and each kind's number of tasks"
    require(any(map(any, pages_of.values())), "human", f"no tasks ({dict(all_skipped)})", remedy)
    return pages_of, given, all_skipped
