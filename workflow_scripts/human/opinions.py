"""What the answers say: majorities, who answered with care, agreement, and shares with their intervals.

A task's value is 1 for: the generator whose name comes first (perceptual), yes (match), the prompt's own caption
(caption), the compound's picture (compound), yes (confusing). It is 0 for the other answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import krippendorff
import numpy as np
import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.human.tasks import ALL_KINDS, KINDS, PROMPT
from workflow_scripts.stats import interval

TIE, ALL = "tie", "all"


def with_first(tasks: pd.DataFrame) -> pd.DataFrame:
    """``tasks`` with columns a and b: the two generators by name; where there is one, it and None."""
    pairs = [
        sorted((x, y)) if pd.notna(y) else [x, None]
        for x, y in tasks[["generator_1", "generator_2"]].itertuples(index=False)
    ]
    return tasks.assign(a=[p[0] for p in pairs], b=[p[1] for p in pairs])


def value(kind: str, answer: str, task: Mapping[str, Any]) -> float:
    """The answer as 1 or 0 (see above). task: a row of ``tasks.TASKS`` with a and b."""
    if kind == "perceptual":
        return float(task[f"generator_{answer}"] == task["a"])
    return float(answer == ("yes" if "yes" in ALL_KINDS[kind].answers else task["right"]))


def opinions_of(answers: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """A row an answer: worker, seconds, answer, value (None for gold tasks), and its task's columns with a and b."""
    merged = answers.merge(with_first(tasks), on="task_id")
    merged["value"] = [
        None if row["check"] == "gold" else value(row["kind"], row["answer"], row) for row in merged.to_dict("records")
    ]
    return merged


def workers_of(opinions: pd.DataFrame, keep: float) -> pd.DataFrame:
    """A row a worker, sorted: answers, mean and median seconds a task, checks met and passed, and whether kept.

    Kept are those who got at least ``keep`` of their gold tasks right, and those who met none. repeats_same: answers
    to repeated tasks that agree with the worker's first; they decide nothing, for a task can be a toss-up.
    """
    gold = opinions[opinions["check"] == "gold"]
    right = (gold["answer"] == gold["right"]).groupby(gold["worker"]).agg(["size", "sum"])
    again = opinions.loc[opinions["check"] == "repeat", ["worker", "of", "value"]].merge(
        opinions[["worker", "task_id", "value"]].rename(columns={"task_id": "of"}), on=["worker", "of"]
    )
    same = (again["value_x"] == again["value_y"]).groupby(again["worker"]).agg(["size", "sum"])
    table = opinions.groupby("worker")["seconds"].agg(answers="size", seconds_mean="mean", seconds_median="median")
    for name, found in (("gold", right), ("repeats", same)):
        counts = found.reindex(table.index, fill_value=0).astype(int)
        table[name], table[f"{name}_{'right' if name == 'gold' else 'same'}"] = counts["size"], counts["sum"]
    table["kept"] = (table["gold"] == 0) | (table["gold_right"] >= keep * table["gold"])
    return table.reset_index()


def majorities(opinions: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """A row for each task of the study: answers, share (the mean value; NaN without answers) and majority.

    majority: a generator, ``yes`` or ``no``, ``prompt`` or ``other``, or ``tie``; None without answers. Repeats do
    not count. opinions: of the workers that were kept.
    """
    table = with_first(tasks[tasks["check"] == "none"])
    counted = opinions.loc[opinions["check"] == "none"].groupby("task_id")["value"]
    found = counted.agg([("answers", "size"), ("share", lambda values: float(np.mean(values.astype(float))))])
    table = table.merge(found, left_on="task_id", right_index=True, how="left")
    table["answers"] = table["answers"].fillna(0).astype(int)
    table["share"] = table["share"].astype(float)
    names = {"match": ("yes", "no"), "caption": ("prompt", "other")}
    table["majority"] = [
        None
        if np.isnan(row["share"])
        else TIE
        if row["share"] == 0.5
        else names.get(row["kind"], (row["a"], row["b"]))[int(row["share"] < 0.5)]
        for row in table.to_dict("records")
    ]
    return table


def alpha(counts: np.ndarray) -> float | None:
    """Krippendorff's alpha, nominal, of (tasks, values) counts; None where all answers are the same or too few."""
    paired = counts[counts.sum(axis=1) > 1]
    if (paired.sum(axis=0) > 0).sum() < 2:
        return None
    return float(krippendorff.alpha(value_counts=paired, level_of_measurement="nominal"))


def agreement(rows: pd.DataFrame, resamples: int, generator: np.random.Generator) -> dict[str, Any]:
    """Alpha of the answers of one kind, its interval over images, and how many tasks had two answers or more.

    rows: as ``majorities`` gives them.
    """
    rows = rows[rows["answers"] > 1]
    ones = np.round(rows["share"] * rows["answers"]).to_numpy(int)
    counts = np.stack([ones, rows["answers"].to_numpy(int) - ones], axis=1)
    return agreement_of(counts, rows["image_id"].to_numpy(str), resamples, generator)


def agreement_of(
    counts: np.ndarray, images: np.ndarray, resamples: int, generator: np.random.Generator
) -> dict[str, Any]:
    """Alpha of (tasks, values) counts, two answers a task at least, and its interval over the tasks' ``images``."""
    images, index = np.unique(images, return_inverse=True)
    found = alpha(counts)
    low = high = None
    if found is not None and len(images) > 1:
        by_image = [np.flatnonzero(index == i) for i in range(len(images))]
        drawn = generator.integers(len(images), size=(resamples, len(images)))
        draws = [alpha(counts[np.concatenate([by_image[i] for i in row])]) for row in drawn]
        low, high = np.quantile([a for a in draws if a is not None], [0.025, 0.975]).tolist()
    return {"alpha": found, "low": low, "high": high, "tasks": len(counts), "images": len(images)}


def _shares(
    rows: pd.DataFrame, values: np.ndarray, about: Mapping[str, Any], resamples: int, seed: int
) -> dict[str, Any]:
    found = interval.share(
        rows["image_id"].to_numpy(str),
        values,
        np.ones(len(rows)),
        resamples,
        rng(seed, "analyze", *(about[name] or "" for name in ("kind", "generator", "against", "split"))),
    )
    return {
        **about,
        "share": found.value,
        "low": found.low,
        "high": found.high,
        "answers": len(rows),
        "tasks": rows["task_id"].nunique(),
        "images": rows["image_id"].nunique(),
    }


def preferences(opinions: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """A row a kind, generator and split, with the share of answers for it and an interval over images.

    Perceptual: how often the generator's image was preferred, to each other's (against) and to all; match: yes;
    caption: the prompt's own. Split ``all`` is of all splits. opinions: of the workers that were kept.
    """
    study = opinions[opinions["check"] == "none"]
    rows = []
    for kind in (k for k in KINDS if (study["kind"] == k).any()):
        of_kind = study[study["kind"] == kind]
        splits = [*(s for s in ("test_seen", "test_unseen", "test_swapped") if (of_kind["split"] == s).any()), ALL]
        names = sorted({*of_kind["a"], *of_kind["b"].dropna()})
        for name in names:
            rivals = [None] if kind != "perceptual" else [ALL, *(other for other in names if other != name)]
            for rival in rivals:
                mine = (of_kind["a"] == name) | (of_kind["b"] == name)
                if rival not in (None, ALL):
                    mine &= (of_kind["a"] == rival) | (of_kind["b"] == rival)
                for split in splits:
                    part = of_kind[mine & ((of_kind["split"] == split) | (split == ALL))]
                    if part.empty:
                        continue
                    values = part["value"].to_numpy(float)
                    if kind == "perceptual":
                        values = np.where(part["a"] == name, values, 1 - values)
                    about = {"kind": kind, "generator": name, "against": rival, "split": split}
                    rows.append(_shares(part, values, about, resamples, seed))
    columns = ["kind", "generator", "against", "split", "share", "low", "high", "answers", "tasks", "images"]
    return pd.DataFrame(rows, columns=columns)


def prompt_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The prompt of a task or of a score, as one key."""
    return tuple(int(row[name]) if name in ("caption_id", "draw") else row[name] for name in PROMPT)
