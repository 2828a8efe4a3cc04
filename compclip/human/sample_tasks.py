"""Sample tasks for people from a scored run."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core import cli
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import IMAGES
from compclip.human.config import Sampling
from compclip.human.entries import read_entries
from compclip.human.pictures import drawn_text, random_drawings
from compclip.human.steps import SampleTasks
from compclip.human.study import GOLD, Page, Picture, Task, check_counts, with_checks, write_study
from compclip.human.tasks import KINDS, PROMPT
from compclip.io import read_table, write_json

# Prompts of a cell that are compared for each task wanted, because two generators may make the same image.
COMPARED_PER_TASK = 4
PAGE = 20  # tasks between checks


def in_turns(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Shuffle rows so that each image occurs once before any occurs twice, and each pair likewise."""
    mixed = rows.iloc[generator.permutation(len(rows))]
    image = mixed.groupby("image_id").cumcount()
    pair = mixed.groupby([image, mixed["pair"].fillna("")]).cumcount()
    return mixed.iloc[np.lexsort((np.arange(len(mixed)), pair, image))]


def allot(sizes: Sequence[int], total: int, generator: np.random.Generator) -> list[int]:
    """Return how many of ``total`` each cell gives: equally many, up to its size; the remainder is drawn."""
    given = np.zeros(len(sizes), int)
    while (left := min(total, sum(sizes)) - int(given.sum())) > 0:
        open_cells = np.flatnonzero(given < sizes)
        given[open_cells if len(open_cells) <= left else generator.choice(open_cells, left, replace=False)] += 1
    return given.tolist()


class Cell(NamedTuple):
    """The possible tasks of a kind, a split and one or two generators, in the order in which they are used."""

    split: str
    generators: tuple[str, ...]
    tasks: list[Task]


def _prompt(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in PROMPT}


def correctness_cells(kind: str, entries: pd.DataFrame, seed: int) -> tuple[list[Cell], Counter[str]]:
    """Return a cell for each split and generator, and counts of what was skipped; ``entries`` as in ``entries_of``."""
    cells, skipped = [], Counter[str]()
    if kind == "caption":
        skipped["no other caption"] += int(entries["other"].isna().sum())
        entries = entries[entries["other"].notna()]
    for (split, name), rows in entries.groupby(["split", "generator"]):
        tasks = [
            Task(
                kind, (Picture(row.path),), (row.text,) if kind == "match" else (row.text, row.other),
                prompt=_prompt(row), generators=(name,), right=None if kind == "match" else "1",
            )
            for row in in_turns(rows, rng(seed, "sample_tasks", kind, split, name)).itertuples()
        ]  # fmt: skip
        cells.append(Cell(split, (name,), tasks))
    return cells, skipped


def perceptual_cells(
    entries: pd.DataFrame, wanted: int, content: Callable[[str], str], seed: int
) -> tuple[list[Cell], Counter[str]]:
    """Return a cell for each split and two generators that both have images of its prompts, and counts of skips.

    ``content`` hashes a file's bytes; two equal images are no task.
    """
    cells, skipped = [], Counter[str]()
    for split, of_split in entries.groupby("split"):
        by_generator = dict(tuple(of_split.groupby("generator")))
        for a, b in combinations(sorted(by_generator), 2):
            both = by_generator[a].merge(by_generator[b][[*PROMPT, "path"]], on=PROMPT, suffixes=("", "_b"))
            # Enough for the cell even if it must replace all others.
            rows = in_turns(both, rng(seed, "sample_tasks", "perceptual", split, a, b)).head(COMPARED_PER_TASK * wanted)
            tasks = []
            for row in rows.itertuples():
                if content(row.path) == content(row.path_b):
                    skipped["two generators' images are the same"] += 1
                else:
                    pictures = (Picture(row.path), Picture(row.path_b))
                    tasks.append(Task("perceptual", pictures, prompt=_prompt(row), generators=(a, b)))
            cells.append(Cell(split, (a, b), tasks))
    return cells, skipped


def choose(cells: Sequence[Cell], wanted: int, generator: np.random.Generator) -> list[list[Task]]:
    """Return the tasks that each cell gives; the sides of every other task are reversed."""
    chosen = []
    for cell, n in zip(cells, allot([len(c.tasks) for c in cells], wanted, generator), strict=True):
        reverse = generator.permutation(np.arange(n) % 2).astype(bool)
        chosen.append([task.reversed() if r else task for task, r in zip(cell.tasks[:n], reverse, strict=True)])
    return chosen


def gold_task(kind: str, source: str | None, generator: np.random.Generator, stream: str) -> Task:
    """Return a task with a known answer: an image beside its shuffled tiles, or a drawn shape with a wrong text.

    ``source`` is the file of a perceptual task's image; ``stream`` names the random stream that shuffles its tiles.
    """
    first = bool(generator.integers(2))
    right = "1" if first else "2"
    if kind == "perceptual":
        whole, mixed = Picture(source), Picture(source, broken_by=stream)
        return Task(kind, (whole, mixed) if first else (mixed, whole), check="gold", right=right)
    drawings = random_drawings(generator)
    true, false = (drawn_text(*drawing) for drawing in drawings[:2])
    picture = (Picture(drawing=drawings[0]),)
    if kind == "match":
        return Task(kind, picture, (true if first else false,), check="gold", right="yes" if first else "no")
    return Task(kind, picture, (true, false) if first else (false, true), check="gold", right=right)


def plan(
    entries: pd.DataFrame, real: Mapping[str, str], content: Callable[[str], str], sampling: Sampling, seed: int
) -> tuple[dict[str, list[Page]], list[dict[str, Any]], Counter[str]]:
    """Sample the tasks of each kind and deal them to pages.

    Returns the pages of each kind; how many tasks each cell gave, of how many; and why images were skipped.

    ``entries`` as from ``entries_of``; ``real`` has each image_id's real image, for gold tasks; ``content`` hashes a
    file's bytes.
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
        generator = rng(seed, "sample_tasks", kind)
        chosen = choose(cells, wanted, generator)
        for cell, tasks in zip(cells, chosen, strict=True):
            about = {"kind": kind, "split": cell.split, "generators": list(cell.generators)}
            given.append({**about, "tasks": len(tasks), "of": len(cell.tasks)})
        pages_of[kind] = []
        # As few pages as possible, with each cell spread over all of them.
        turns = [(turn, task) for tasks in chosen for turn, task in enumerate(tasks)]
        order = [turns[i] for i in generator.permutation(len(turns))]
        dealt = [task for _, task in sorted(order, key=lambda item: item[0])]
        pages = -(-len(dealt) // PAGE)
        for batch, page in enumerate((dealt[first::pages] for first in range(pages)), 1):
            sources = [real.get(task.prompt["image_id"], task.pictures[0].path) for task in page]
            gold = [
                gold_task(kind, sources[int(generator.integers(len(sources)))], generator, f"{kind} {batch} {n}")
                for n in range(GOLD)
            ]
            pages_of[kind].append(with_checks(page, gold, generator))
    return pages_of, given, all_skipped


def main(step: SampleTasks) -> None:
    entries, skipped = read_entries(step)
    require(len(entries), step.where, f"no scored image of {', '.join(step.generators)}", "compute the scores first")
    images = read_table(step.images, IMAGES).dropna(subset="path")

    @cache
    def content(path: str) -> str:
        return sha256(step.results / path)

    real = images.set_index("image_id")["path"].to_dict()
    pages, cells, unused = plan(entries, real, content, step.sampling, step.seed)
    skipped.update(unused)
    kinds = {kind: check_counts(of_kind) for kind, of_kind in pages.items()}
    remedy = "see human.generators, human.splits and each kind's number of tasks"
    require(any(map(any, pages.values())), step.where, f"no tasks ({dict(skipped)})", remedy)
    write_study(step, pages, (step.seed, step.dataset, step.composition), step.results)
    summary = {
        "dataset": step.dataset, "composition": step.composition, "seed": step.seed, "generators": step.generators,
        "kinds": kinds, "cells": cells,
        "skipped": {reason: n for reason, n in sorted(skipped.items()) if n},
    }  # fmt: skip
    write_json(summary, step.summary)
    for kind, counts in kinds.items():
        wanted = getattr(step.sampling, kind)
        if counts["none"] < wanted:
            log.warning("warning: %s: %s: %d tasks of %d", step.where, kind, counts["none"], wanted)


if __name__ == "__main__":
    cli.run(main)
