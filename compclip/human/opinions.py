"""Evaluate answers: their values, the reliability of workers, majorities, and preferences with
intervals.

The value of an answer is 1 for: the generator whose name sorts first (perceptual), yes (match), the
prompt's own caption (caption), the compound's picture (compound). It is 0 for every other answer.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.human.answers import collect
from compclip.stats import interval

TIE, ALL = "tie", "all"
RESAMPLES = 2000  # of the intervals of a study, over images or compounds
MAX_WARNINGS = 5  # number of faulty records on the screen; the log has all


def with_first(tasks: pd.DataFrame) -> pd.DataFrame:
    """Add the columns a and b: the two generators sorted by name, or the only one and None."""
    one, two = tasks["generator_1"], tasks["generator_2"]
    turned = two.notna() & (two.fillna("") < one.fillna(""))
    return tasks.assign(a=one.mask(turned, two), b=two.mask(turned, one))


def opinions_of(answers: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each answer: worker, seconds, answer, value (NaN for gold tasks), and the
    task's columns.
    """
    merged = answers.merge(with_first(tasks), on="task_id")
    preferred = merged["generator_1"].where(merged["answer"] == "1", merged["generator_2"])
    agreed = merged["answer"] == merged["right"].mask(merged["kind"] == "match", "yes")
    ones = agreed.mask(merged["kind"] == "perceptual", preferred == merged["a"])
    return merged.assign(value=ones.astype(float).mask(merged["check"] == "gold"))


def workers_of(opinions: pd.DataFrame, keep: float) -> pd.DataFrame:
    """Return a row for each worker, sorted: counts, mean and median seconds, checks met and passed,
    and kept.

    Workers are kept if they answered at least ``keep`` of their gold tasks correctly, or had none.
    repeats_same counts the repeated tasks with the same answer; it does not exclude workers,
    because a task can be a toss-up.
    """
    first = opinions[["worker", "task_id", "value"]].rename(
        columns={"task_id": "of", "value": "before"}
    )
    table = opinions.merge(first, on=["worker", "of"], how="left")
    table["gold"] = table["check"] == "gold"
    table["gold_right"] = table["gold"] & (table["answer"] == table["right"])
    table["repeats"] = table["before"].notna()
    table["repeats_same"] = table["before"] == table["value"]
    by_worker = table.groupby("worker")
    workers = by_worker["seconds"].agg(answers="size", seconds_mean="mean", seconds_median="median")
    workers = workers.join(by_worker[["gold", "gold_right", "repeats", "repeats_same"]].sum())
    workers["kept"] = (workers["gold"] == 0) | (workers["gold_right"] >= keep * workers["gold"])
    return workers.reset_index()


def worker_counts(workers: pd.DataFrame) -> dict[str, int]:
    excluded, unchecked = (~workers["kept"]).sum(), (workers["gold"] == 0).sum()
    return {"answered": len(workers), "excluded": int(excluded), "met_no_gold_task": int(unchecked)}


def screen(
    tasks: pd.DataFrame, files: Sequence[Path], keep: float
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, int]]:
    """Read the answers to a study and exclude workers who fail more than ``1 - keep`` of their gold
    tasks.

    Returns:
        The answers that count, as from ``opinions_of``; the workers, as from ``workers_of``, with
        numbers in the order of their names instead of names; and counts of the records, as from
        ``collect``.
    """
    answers, records, problems = collect(
        files, dict(zip(tasks["task_id"], tasks["kind"], strict=True))
    )
    for problem in problems[:MAX_WARNINGS]:
        log.warning("warning: %s", problem)
    for problem in problems[MAX_WARNINGS:]:
        log.debug("skipped: %s", problem)
    if problems:
        log.warning("warning: %d faulty records skipped; the log lists them", len(problems))
    require(len(answers), files[0], "no answer to the tasks", "give the answers to these tasks")
    if contradictions := records["contradicts another"]:
        log.warning(
            "warning: %d answers contradict another answer of the same worker; skipped",
            contradictions,
        )
    opinions = opinions_of(answers, tasks)
    workers = workers_of(opinions, keep)
    excluded = workers.loc[~workers["kept"], "worker"].tolist()
    if excluded:
        log.warning("warning: excluded for too many wrong gold tasks: %s", ", ".join(excluded))
    kept = opinions[~opinions["worker"].isin(excluded)]
    fault = (
        f"no answer to the study is left: {len(excluded)} of {len(workers)} workers missed "
        "too many gold tasks"
    )
    require(
        (kept["check"] == "none").any(),
        files[0],
        fault,
        f"ask more people, or lower keep ({keep:g})",
    )
    numbered = workers.assign(worker=np.arange(1, len(workers) + 1)).round(DECIMALS)
    return kept, numbered, dict(sorted(records.items()))


def majorities(opinions: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task of the study: answers, share (the mean value; NaN without answers)
    and majority.

    majority is a generator, yes or no, prompt or other, or TIE; None without answers. Repeats are
    ignored. ``opinions`` are those of kept workers.
    """
    table = with_first(tasks[tasks["check"] == "none"])
    counted = opinions[opinions["check"] == "none"]
    table = table.join(
        counted.groupby("task_id")["value"].agg(answers="size", share="mean"), on="task_id"
    )
    table["answers"] = table["answers"].fillna(0).astype(int)
    names, columns = (
        {"match": ("yes", "no"), "caption": ("prompt", "other")},
        ["kind", "a", "b", "share"],
    )
    won = [
        names.get(kind, (a, b))[int(share < 0.5)]
        for kind, a, b, share in table[columns].itertuples(index=False)
    ]
    majority = pd.Series(won, table.index, dtype=object).mask(table["share"] == 0.5, TIE)
    return table.assign(majority=majority.where(table["share"].notna(), None))


def with_all_splits(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, followed by all of them again as split ALL."""
    return pd.concat([rows, rows.assign(split=ALL)])


def preferences(opinions: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """Return the fraction of answers for each generator, by kind and split, with an interval over
    images.

    A perceptual answer counts for the generator whose image was preferred, against each other
    generator and against all; others count by their value. Split ALL has all splits. ``opinions``
    are those of kept workers.
    """
    study = opinions[opinions["check"] == "none"]
    sides = study.assign(generator=study["a"], against=study["b"].fillna(""))
    compared = sides[sides["kind"] == "perceptual"]
    reverse = compared.assign(
        generator=compared["b"], against=compared["a"], value=1 - compared["value"]
    )
    sides = pd.concat([sides, reverse, *(side.assign(against=ALL) for side in (compared, reverse))])
    rows = []
    for names, answers in with_all_splits(sides).groupby(["kind", "generator", "against", "split"]):
        images, values = answers["image_id"].to_numpy(str), answers["value"].to_numpy(float)
        estimate = interval.share(
            images, values, np.ones(len(values)), resamples, rng(seed, "analyze", *names)
        )
        counts = (len(answers), answers["task_id"].nunique(), answers["image_id"].nunique())
        rows.append((*names, estimate.value, estimate.low, estimate.high, *counts))
    columns = [
        "kind",
        "generator",
        "against",
        "split",
        "share",
        "low",
        "high",
        "answers",
        "tasks",
        "images",
    ]
    return pd.DataFrame(rows, columns=columns)
