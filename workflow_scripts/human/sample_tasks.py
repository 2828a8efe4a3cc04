"""Sample what people are asked from a scored run, balanced over splits and generators, and say what it will cost.

Perceptual tasks set two generators' images of one prompt side by side. Tasks of correctness show one image, with its
caption to agree to or not (match), or with its caption and another (caption). The other caption differs in adjectives
alone: of a seen caption it is its swap, of a swapped one its original, of an unseen one itself with a wrong adjective
in place of the held-out pair's. Seen captions are those that were swapped, where there are any, so that seen and
swapped are of the same captions. Each page gets tasks with a known answer, and repeats some of its own. Interface
and pay: appendix 1.2, figures 1 to 3.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from workflow_scripts.core import cli
from workflow_scripts.core.cache import key
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import atomic_folder, read_table, write_json, write_table
from workflow_scripts.core.progress import track
from workflow_scripts.core.section import read_settings
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import (
    CAPTIONS,
    IMAGES,
    MANIFEST,
    PAIRS,
    PROMPTS,
    RANKING,
    SCORES,
    SWAPPED,
)
from workflow_scripts.human.config import HumanConfig
from workflow_scripts.human.cost import cost, cost_lines
from workflow_scripts.human.pictures import COLORS, SHAPES, broken, drawn, drawn_text, encode, read_picture
from workflow_scripts.human.tasks import ALL_KINDS, CHECKS, KINDS, PROMPT, TASKS
from workflow_scripts.score.adjective_choice import make_trials

# Prompts of a cell that are looked at for each task wanted: images of two generators may be the same.
LOOKED_AT = 4


@dataclass(frozen=True)
class Picture:
    """What is shown: a file, perhaps broken into tiles by the generator of random numbers so named, or a drawing."""

    path: str | None = None
    broken_by: str | None = None
    drawing: tuple[str, str] | None = None


@dataclass(frozen=True)
class Task:
    """A row of ``tasks.TASKS`` before it has a page; ``pictures`` as they are to be made."""

    kind: str
    pictures: tuple[Picture, ...]
    texts: tuple[str, ...] = ()
    check: str = "none"
    of: Task | None = None
    right: str | None = None
    prompt: Mapping[str, Any] = field(default_factory=dict)
    generators: tuple[str, ...] = ()


def turned(task: Task) -> Task:
    """The same task with its sides in the other order; a task of yes or no has but one."""
    if ALL_KINDS[task.kind].answers == ("yes", "no"):
        return task
    right = None if task.right is None else str(len(ALL_KINDS[task.kind].answers) + 1 - int(task.right))
    return replace(
        task,
        pictures=task.pictures[::-1],
        texts=task.texts[::-1],
        generators=task.generators[::-1],
        right=right,
    )


def other_captions(
    swapped: pd.DataFrame, prompts: pd.DataFrame, trials: pd.DataFrame
) -> dict[tuple[str, str, int], str]:
    """The caption that a prompt is set against, by (split, image_id, caption_id); see the module's first lines.

    trials: columns image_id, caption_id, adjective, noun, wrong_text, as ``adjective_choice.make_trials`` gives them.
    """
    result: dict[tuple[str, str, int], str] = {}
    for row in swapped.itertuples():
        result["test_seen", row.image_id, row.caption_id] = row.swapped_text
        result["test_swapped", row.image_id, row.caption_id] = row.text
    held = prompts.loc[prompts["split"] == "test_unseen", ["image_id", "caption_id", "pair"]].drop_duplicates()
    named = trials.assign(pair=trials["adjective"] + "_" + trials["noun"])
    for row in held.merge(named, on=["image_id", "caption_id", "pair"]).itertuples():
        result["test_unseen", row.image_id, row.caption_id] = row.wrong_text
    return result


def entries_of(
    prompts: pd.DataFrame,
    manifests: Mapping[str, pd.DataFrame],
    scores: Mapping[tuple[str, str], pd.DataFrame],
    others: Mapping[tuple[str, str, int], str],
    splits: Sequence[str],
) -> tuple[pd.DataFrame, Counter[str]]:
    """A row for each scored image: generator, ``PROMPT``, text, pair, other (None: no other caption), path.

    scores: by generator and split. Also counts why others were left out.
    """
    parts, left_out = [], Counter[str]()
    for name, manifest in manifests.items():
        mine = manifest[manifest["split"].isin(splits)]
        shown = mine[mine["status"] == "ok"].drop(columns="status")
        left_out["no image"] += len(mine) - len(shown)
        keys = [
            scores[name, split][PROMPT[1:]].assign(split=split)
            for split in sorted(mine["split"].unique())
            if (name, split) in scores
        ]
        scored = shown.merge(pd.concat(keys), on=PROMPT) if keys else shown.head(0)
        left_out["not scored"] += len(shown) - len(scored)
        parts.append(scored.merge(prompts[[*PROMPT, "text", "pair"]], on=PROMPT).assign(generator=name))
    table = pd.concat(parts, ignore_index=True)
    table["other"] = [
        others.get((s, i, int(c))) for s, i, c in table[["split", "image_id", "caption_id"]].itertuples(index=False)
    ]
    plain = (table["split"] == "test_seen") & table["other"].isna()
    if len(table[table["split"] == "test_seen"]) > plain.sum():
        left_out["seen caption that was not swapped"] += int(plain.sum())
        table = table[~plain]
    table = table.sort_values(["generator", *PROMPT], ignore_index=True)
    return table.astype(object).where(table.notna(), None), left_out


def in_turns(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """``rows`` shuffled, then a row of each image before a second of any, and of each pair before a second."""
    mixed = rows.iloc[generator.permutation(len(rows))]
    image = mixed.groupby("image_id").cumcount()
    pair = mixed.groupby([image, mixed["pair"].fillna("")]).cumcount()
    return mixed.iloc[np.lexsort((np.arange(len(mixed)), pair, image))]


def allot(sizes: Sequence[int], total: int, generator: np.random.Generator) -> list[int]:
    """How many of ``total`` each cell gives: the same, as far as its size goes; what is left over is drawn."""
    given = np.zeros(len(sizes), int)
    room = np.asarray(sizes, int)
    for _ in range(max(sizes, default=0)):
        open_cells = np.flatnonzero(given < room)
        left = total - given.sum()
        if left <= 0:
            break
        given[open_cells if len(open_cells) <= left else generator.choice(open_cells, left, replace=False)] += 1
    return given.tolist()


@dataclass(frozen=True)
class Cell:
    """Tasks of a kind, a split and one or two generators, those to be asked first standing first."""

    split: str
    generators: tuple[str, ...]
    tasks: list[Task]


def _prompt(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in PROMPT}


def correctness_cells(kind: str, entries: pd.DataFrame, seed: int) -> tuple[list[Cell], Counter[str]]:
    """A cell for each split and generator. entries: as ``entries_of`` gives them."""
    cells, left_out = [], Counter[str]()
    if kind == "caption":
        left_out["no other caption"] += int(entries["other"].isna().sum())
        entries = entries[entries["other"].notna()]
    for (split, name), rows in entries.groupby(["split", "generator"]):
        tasks = [
            Task(
                kind,
                (Picture(row.path),),
                (row.text,) if kind == "match" else (row.text, row.other),
                prompt=_prompt(row),
                generators=(name,),
                right=None if kind == "match" else "1",
            )
            for row in in_turns(rows, rng(seed, "sample_tasks", kind, split, name)).itertuples()
        ]
        cells.append(Cell(split, (name,), tasks))
    return cells, left_out


def perceptual_cells(
    entries: pd.DataFrame, wanted: int, content: Callable[[str], Any], seed: int
) -> tuple[list[Cell], Counter[str]]:
    """A cell for each split and two generators that both made an image of its prompts.

    content: a path's bytes, or a hash of them: two images that are the same are no task.
    """
    cells, left_out = [], Counter[str]()
    for split, of_split in entries.groupby("split"):
        by_name = dict(tuple(of_split.groupby("generator")))
        for a, b in combinations(sorted(by_name), 2):
            both = by_name[a].merge(by_name[b][[*PROMPT, "path"]], on=PROMPT, suffixes=("", "_b"))
            # Enough for the cell even where it must stand in for all others.
            order = in_turns(both, rng(seed, "sample_tasks", "perceptual", split, a, b)).head(LOOKED_AT * wanted)
            same = [content(row.path) == content(row.path_b) for row in order.itertuples()]
            left_out["two generators' images are the same"] += sum(same)
            tasks = [
                Task("perceptual", (Picture(row.path), Picture(row.path_b)), prompt=_prompt(row), generators=(a, b))
                for row, equal in zip(order.itertuples(), same, strict=True)
                if not equal
            ]
            cells.append(Cell(split, (a, b), tasks))
    return cells, left_out


def choose(cells: Sequence[Cell], wanted: int, generator: np.random.Generator) -> list[list[Task]]:
    """Of each cell its share, first and second side changed in every other task."""
    chosen = []
    for cell, n in zip(cells, allot([len(c.tasks) for c in cells], wanted, generator), strict=True):
        turn = generator.permutation(np.arange(n) % 2).astype(bool)
        chosen.append([turned(task) if t else task for task, t in zip(cell.tasks[:n], turn, strict=True)])
    return chosen


def pages_of(chosen: Sequence[Sequence[Task]], size: int, generator: np.random.Generator) -> list[list[Task]]:
    """Pages of at most ``size`` tasks, as many as need be, over which every cell is spread."""
    turns = [(turn, task) for tasks in chosen for turn, task in enumerate(tasks)]
    order = [turns[i] for i in generator.permutation(len(turns))]
    dealt = [task for _, task in sorted(order, key=lambda item: item[0])]
    pages = -(-len(dealt) // size)
    return [dealt[page::pages] for page in range(pages)]


def gold_task(kind: str, source: str | None, generator: np.random.Generator, name: str) -> Task:
    """A task whose answer is known: a broken picture beside itself, or a drawn shape with a true and a false text.

    source: the file of the perceptual one. name: of the random numbers that break it.
    """
    first = bool(generator.integers(2))
    if kind == "perceptual":
        whole, cut = Picture(source), Picture(source, broken_by=name)
        return Task(kind, (whole, cut) if first else (cut, whole), check="gold", right="1" if first else "2")
    colors, shapes = generator.permutation(list(COLORS)).tolist(), generator.permutation(SHAPES).tolist()
    true, false = drawn_text(colors[0], shapes[0]), drawn_text(colors[1], shapes[1])
    picture = (Picture(drawing=(colors[0], shapes[0])),)
    if kind == "match":
        return Task(kind, picture, (true if first else false,), check="gold", right="yes" if first else "no")
    return Task(kind, picture, (true, false) if first else (false, true), check="gold", right="1" if first else "2")


def with_checks(page: Sequence[Task], gold: Sequence[Task], repeats: int, generator: np.random.Generator) -> list[Task]:
    """The page in the order that people meet it: repeats in its last third, of tasks in its first half."""
    order = [page[i] for i in generator.permutation(len(page))]
    again = generator.permutation(len(order) // 2)[:repeats]
    asked_twice = [replace(turned(order[i]), check="repeat", of=order[i]) for i in sorted(again)]
    for task in gold:
        order.insert(int(generator.integers(1, len(order) + 1)), task)
    for task in asked_twice:
        order.insert(int(generator.integers(-(-2 * len(order) // 3), len(order) + 1)), task)
    return order


def plan(
    entries: pd.DataFrame, real: Mapping[str, str], content: Callable[[str], Any], config: HumanConfig, seed: int
) -> tuple[dict[str, list[list[Task]]], list[dict[str, Any]], Counter[str]]:
    """The pages of each kind; how many tasks each cell gave, of how many; and why others were left out.

    real: the real image of an image_id, for gold tasks.
    """
    pages: dict[str, list[list[Task]]] = {}
    about, left_out = [], Counter[str]()
    for kind in KINDS:
        wanted = getattr(config, kind).tasks
        if not wanted:
            continue
        if kind == "perceptual":
            cells, why = perceptual_cells(entries, wanted, content, seed)
        else:
            cells, why = correctness_cells(kind, entries, seed)
        left_out.update(why)
        generator = rng(seed, "sample_tasks", kind)
        chosen = choose(cells, wanted, generator)
        for cell, tasks in zip(cells, chosen, strict=True):
            about.append(
                {"kind": kind, "split": cell.split, "generators": list(cell.generators), "tasks": len(tasks),
                 "of": len(cell.tasks)}
            )  # fmt: skip
        pages[kind] = []
        for batch, page in enumerate(pages_of(chosen, config.batch, generator), 1):
            sources = [real.get(t.prompt["image_id"], t.pictures[0].path) for t in page]
            gold = [
                gold_task(kind, sources[int(generator.integers(len(sources)))], generator, f"{kind} {batch} {n}")
                for n in range(config.gold)
            ]
            pages[kind].append(with_checks(page, gold, config.repeats, generator))
    return pages, about, left_out


def image_of(picture: Picture, results: Path, seed: int) -> Image.Image:
    """Raises UserError where the file cannot be read."""
    if picture.drawing is not None:
        return drawn(*picture.drawing)
    assert picture.path is not None
    image = read_picture(results / picture.path)
    return broken(image, rng(seed, "sample_tasks", picture.broken_by)) if picture.broken_by else image


def table_of(
    pages: Mapping[str, Sequence[Sequence[Task]]], files: Mapping[Picture, str], study: Sequence[str | int]
) -> pd.DataFrame:
    """Columns of ``TASKS``. files: the name of each picture. study: what tells these tasks from another run's.

    A task's name tells nothing of what it is, and is another where the page, the place, a picture or a text is.
    """
    rows = []
    for kind, of_kind in pages.items():
        for batch, page in enumerate(of_kind, 1):
            names: dict[int, str] = {}
            for place, task in enumerate(page, 1):
                shown = [files[picture] for picture in task.pictures]
                digits = key(*study, "task", kind, batch, place, *shown, *task.texts).hex()[:15]
                # A letter first: a spreadsheet would take 12e4 for a number.
                names[id(task)] = f"t{digits}"
                row = dict.fromkeys(TASKS.columns) | dict(task.prompt)
                row |= {f"generator_{i}": g for i, g in enumerate(task.generators, 1)}
                row |= {f"picture_{i}": file for i, file in enumerate(shown, 1)}
                row |= {f"text_{i}": text for i, text in enumerate(task.texts, 1)}
                row |= {"task_id": names[id(task)], "of": names[id(task.of)] if task.of else None}
                row |= {"kind": kind, "check": task.check, "batch": batch, "place": place, "right": task.right}
                rows.append(row)
    table = pd.DataFrame(rows, columns=list(TASKS.columns))
    return table.astype({name: column.dtype.type for name, column in TASKS.columns.items()})


def read_run(options: argparse.Namespace, config: HumanConfig) -> tuple[pd.DataFrame, Counter[str]]:
    """The scored images, as ``entries_of`` gives them."""
    place = options.results / options.dataset
    ours = place / options.composition
    prompts, swapped = read_table(ours / "prompts.parquet", PROMPTS), read_table(ours / "swapped.parquet", SWAPPED)
    asked = set(prompts.loc[prompts["split"] == "test_unseen", "image_id"])
    captions, pairs = read_table(place / "captions.parquet", CAPTIONS), read_table(place / "pairs.parquet", PAIRS)
    trials, _ = make_trials(
        captions[captions["image_id"].isin(asked)],
        pairs[pairs["image_id"].isin(asked)],
        set(read_heldout(ours / "heldout.json")),
        sorted(read_table(ours / "ranking.parquet", RANKING)["adjective"].unique()),
        options.seed,
    )
    manifests = {g: read_table(ours / "generated" / g / "manifest.parquet", MANIFEST) for g in options.generators}
    scores = {
        (name, split): read_table(ours / "scores" / name / f"{split}.parquet", SCORES)
        for name in options.generators
        for split in config.splits
        if (ours / "scores" / name / f"{split}.parquet").is_file()
    }
    return entries_of(prompts, manifests, scores, other_captions(swapped, prompts, trials), config.splits)


def main(options: argparse.Namespace) -> None:
    config = read_settings(HumanConfig, options.settings)
    where = f"{options.dataset}/{options.composition}"
    entries, left_out = read_run(options, config)
    if entries.empty:
        raise UserError(f"{where}: no scored image of {', '.join(options.generators)}: run the scores first")
    images = read_table(options.results / options.dataset / "images.parquet", IMAGES).dropna(subset="path")
    hashed: dict[str, bytes] = {}

    def content(path: str) -> bytes:
        if path not in hashed:
            hashed[path] = hashlib.blake2b((options.results / path).read_bytes()).digest()
        return hashed[path]

    pages, cells, why = plan(entries, images.set_index("image_id")["path"].to_dict(), content, config, options.seed)
    left_out.update(why)
    tasks = [task for of_kind in pages.values() for page in of_kind for task in page]
    if not tasks:
        raise UserError(f"{where}: nothing to ask: {dict(left_out)}; see human.generators, splits and tasks")
    study = (options.seed, options.dataset, options.composition)
    files: dict[Picture, str] = {}
    with atomic_folder(options.pictures) as folder:
        shown = dict.fromkeys(picture for task in tasks for picture in task.pictures)
        for picture in track(shown, len(shown), "pictures"):
            raw, suffix = encode(image_of(picture, options.results, options.seed))
            files[picture] = f"{key(*study, raw).hex()[:16]}.{suffix}"
            (folder / files[picture]).write_bytes(raw)
    table = table_of(pages, files, study)
    write_table(table, options.output, TASKS)
    counts = table["kind"].value_counts().reindex([k for k in KINDS if k in pages], fill_value=0)
    found = cost({kind: int(n) for kind, n in counts.items()}, config)
    summary = {
        "dataset": options.dataset,
        "composition": options.composition,
        "seed": options.seed,
        "generators": options.generators,
        "kinds": {
            kind: {
                "pages": len(of_kind),
                **{check: sum(t.check == check for page in of_kind for t in page) for check in CHECKS},
            }
            for kind, of_kind in pages.items()
        },
        "cells": cells,
        "left_out": {reason: n for reason, n in sorted(left_out.items()) if n},
        "cost": found,
    }
    write_json(summary, options.summary)
    for kind in pages:
        sampled = summary["kinds"][kind]["none"]
        if sampled < getattr(config, kind).tasks:
            log.warning("warning: %s: %s: %d tasks of %d", where, kind, sampled, getattr(config, kind).tasks)
    for line in cost_lines(found, site=config.site is not None):
        log.info("%s: %s", where, line)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--generators", nargs="+", required=True, help="whose images are shown")
    result.add_argument("--settings", default="{}", metavar="JSON", help="the config's section human, as JSON")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--output", type=Path, required=True, help="tasks.parquet")
    result.add_argument("--pictures", type=Path, required=True, help="folder of the pictures that are shown")
    result.add_argument("--summary", type=Path, required=True, help="tasks.json: counts and the cost")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
