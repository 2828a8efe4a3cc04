"""Sample tasks for people from a scored run, balanced over splits and generators.

Perceptual tasks show two generators' images of one prompt side by side. Tasks of correctness show
one image, with its caption to agree with (match), or with its caption and another one (caption).
Seen captions are those that were swapped, if there are any, so that seen and swapped tasks are
about the same captions. Each page gets tasks with a known answer, and repeats some of its own.
Interface: appendix 1.2, figures 1 to 3.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.human.config import Sampling
from compclip.human.study import Page, Picture, Task, make_pages
from compclip.human.task_pictures import drawn_text, random_drawings
from compclip.human.tasks import KINDS, PROMPT_COLUMNS

# Prompts of a cell that are compared per wanted task, because two generators may make the same
# image.
COMPARED_PER_TASK = 4
TASKS_PER_PAGE = 20  # tasks between checks


def in_turns(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Shuffle rows so that each image, and likewise each pair, occurs once before any occurs
    twice.
    """
    shuffled = rows.iloc[generator.permutation(len(rows))]
    image_turn = shuffled.groupby("image_id").cumcount()
    pairs = shuffled["pair"].fillna("")
    # Pairs take turns within a turn of the images.
    pair_turn = shuffled.groupby([image_turn, pairs]).cumcount()
    # The last key of lexsort is the first to sort by.
    order = np.lexsort((np.arange(len(shuffled)), pair_turn, image_turn))
    return shuffled.iloc[order]


def allot(sizes: Sequence[int], total: int, generator: np.random.Generator) -> list[int]:
    """Return how many of ``total`` tasks each cell gives: equal numbers, up to its size; the
    remainder is drawn.
    """
    counts = np.zeros(len(sizes), int)
    remaining = min(total, sum(sizes))
    while remaining > 0:
        # In each round, every cell that has tasks left gives one.
        giving = np.flatnonzero(counts < sizes)
        if len(giving) > remaining:
            giving = generator.choice(giving, remaining, replace=False)
        counts[giving] += 1
        remaining -= len(giving)
    return counts.tolist()


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
    cells = []
    skipped = Counter[str]()
    if kind == "caption":
        skipped["no other caption"] += int(entries["other"].isna().sum())
        entries = entries[entries["other"].notna()]
    for (split, name), rows in entries.groupby(["split", "generator"]):
        generator = rng(seed, "sample_tasks", kind, split, name)
        tasks = []
        for row in in_turns(rows, generator).to_dict("records"):
            pictures = (Picture(row["path"]),)
            task = Task(kind, pictures, (row["text"],), prompt=row, generators=(name,))
            if kind == "caption":
                # The prompt's own caption is first until the sides are reversed.
                texts = (row["text"], row["other"])
                task = replace(task, texts=texts, right="1")
            tasks.append(task)
        cells.append(Cell(split, (name,), tasks))
    return cells, skipped


def perceptual_cells(
    entries: pd.DataFrame, wanted: int, content: Callable[[str], str], seed: int
) -> tuple[list[Cell], Counter[str]]:
    """Return a cell for each split and pair of generators with images of the same prompts, and
    counts of skips.

    ``content`` hashes a file's bytes; two equal images give no task.
    """
    cells = []
    skipped = Counter[str]()
    for split, split_entries in entries.groupby("split"):
        by_generator = dict(tuple(split_entries.groupby("generator")))
        for a, b in combinations(sorted(by_generator), 2):
            first = by_generator[a]
            second = by_generator[b][[*PROMPT_COLUMNS, "path"]]
            compared = first.merge(second, on=PROMPT_COLUMNS, suffixes=("", "_b"))
            generator = rng(seed, "sample_tasks", "perceptual", split, a, b)
            # enough for the cell even if it must replace all others
            rows = in_turns(compared, generator).head(COMPARED_PER_TASK * wanted)
            tasks = []
            for row in rows.to_dict("records"):
                path_a = row["path"]
                path_b = row["path_b"]
                if content(path_a) == content(path_b):
                    skipped["two generators' images are the same"] += 1
                    continue
                pictures = (Picture(path_a), Picture(path_b))
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
    # Like the page's own tasks, so that it does not stand out.
    model = page[int(generator.integers(len(page)))]
    is_first_right = bool(generator.integers(2))
    if kind == "perceptual":
        # Without a real image, the generated one that the task on the page shows.
        shown_path = model.pictures[0].path
        path = real.get(model.prompt["image_id"], shown_path)
        pair = (Picture(path), Picture(path, broken_by=f"{kind} {stream}"))
        task = Task(kind, pair, check="gold", right="1")
        return task if is_first_right else task.reversed()
    # They differ in color and shape, so that the wrong text is wrong in both.
    shown, absent, _ = random_drawings(generator)
    pictures = (Picture(drawing=shown),)
    true_text = drawn_text(*shown)
    false_text = drawn_text(*absent)
    if kind == "match":
        if is_first_right:
            return Task(kind, pictures, (true_text,), check="gold", right="yes")
        return Task(kind, pictures, (false_text,), check="gold", right="no")
    task = Task(kind, pictures, (true_text, false_text), check="gold", right="1")
    return task if is_first_right else task.reversed()


def deal(
    cells: Sequence[Cell], counts: Sequence[int], generator: np.random.Generator
) -> list[Task]:
    """Return ``counts`` tasks of the cells in turns, each cell's sides reversed in every other."""
    turns = []
    for cell, count in zip(cells, counts, strict=True):
        # As many on each side, up to one, in random order.
        is_reversed = generator.permutation(np.arange(count) % 2).astype(bool)
        dealt = zip(cell.tasks[:count], is_reversed, strict=True)
        for turn, (task, reverse) in enumerate(dealt):
            turns.append((turn, task.reversed() if reverse else task))
    # Sorted by turn, and random within a turn, so that each cell is spread over all pages.
    shuffled = [turns[i] for i in generator.permutation(len(turns))]
    shuffled.sort(key=itemgetter(0))
    return [task for _, task in shuffled]


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
    pages = {}
    cell_counts = []
    all_skipped = Counter[str]()
    for kind in KINDS:
        wanted = getattr(sampling, kind)
        if not wanted:
            continue
        # The two kinds of correctness show one image, and so have other cells.
        if kind == "perceptual":
            cells, skipped = perceptual_cells(entries, wanted, content, seed)
        else:
            cells, skipped = correctness_cells(kind, entries, seed)
        all_skipped.update(skipped)
        generator = rng(seed, "sample_tasks", kind)
        sizes = [len(cell.tasks) for cell in cells]
        counts = allot(sizes, wanted, generator)
        tasks = deal(cells, counts, generator)
        for cell, count in zip(cells, counts, strict=True):
            name = {"kind": kind, "split": cell.split, "generators": list(cell.generators)}
            cell_counts.append({**name, "tasks": count, "of": len(cell.tasks)})
        gold = partial(gold_task, kind, real, generator)
        pages[kind] = make_pages(tasks, TASKS_PER_PAGE, gold, generator)
        if len(tasks) < wanted:
            log.warning("warning: %s: %d tasks of %d", kind, len(tasks), wanted)
    has_tasks = any(map(any, pages.values()))
    fault = f"no tasks ({dict(all_skipped)})"
    remedy = "see human.generators, human.splits and each kind's number of tasks"
    require(has_tasks, "human", fault, remedy)
    return pages, cell_counts, all_skipped
