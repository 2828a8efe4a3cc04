"""Evaluate answers: their values, the reliability of workers, majorities, and preferences with
intervals.

The value of an answer is 1 for: the generator whose name sorts first (perceptual), yes (match), the
prompt's own caption (caption), the compound's picture (compound). It is 0 for every other answer.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.human.answers import collect
from compclip.stats import interval

TIE, ALL = "tie", "all"
TIE = "tie"


ALL = "all"


RESAMPLES = 2000  # of the intervals of a study, over images or compounds
MAX_WARNINGS = 5  # number of faulty records on the screen; the log has all


# The majority of a task whose mean value is above and below 0.5; else the two generators.
MAJORITY_NAMES = {"match": ("yes", "no"), "caption": ("prompt", "other")}


PREFERENCE_COLUMNS = [
    "kind",
    "generator",
    "against",
    "split",
    "fraction",
    "low",
    "high",
    "answers",
    "tasks",
    "images",
]


def with_first(tasks: pd.DataFrame) -> pd.DataFrame:
    """Add the columns a and b: the two generators sorted by name, or the only one and None."""
    one = tasks["generator_1"]
    two = tasks["generator_2"]
    # Sorted, so that the value of an answer does not depend on the side of an image.
    is_turned = two.notna() & (two.fillna("") < one.fillna(""))
    return tasks.assign(a=one.mask(is_turned, two), b=two.mask(is_turned, one))


def opinions_of(answers: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each answer: worker, seconds, answer, value (NaN for gold tasks), and the
    task's columns.
    """
    merged = answers.merge(with_first(tasks), on="task_id")
    # The value of a match is yes, whether or not yes is right.
    expected = merged["right"].mask(merged["kind"] == "match", "yes")
    is_expected = merged["answer"] == expected
    preferred = merged["generator_1"].where(merged["answer"] == "1", merged["generator_2"])
    # By name, because either side may be the first generator's.
    is_one = is_expected.mask(merged["kind"] == "perceptual", preferred == merged["a"])
    # The answers to gold tasks measure only the workers.
    value = is_one.astype(float).mask(merged["check"] == "gold")
    return merged.assign(value=value)


def workers_of(opinions: pd.DataFrame, keep: float) -> pd.DataFrame:
    """Return a row for each worker, sorted: counts, mean and median seconds, checks met and passed,
    and kept.

    Workers are kept if they answered at least ``keep`` of their gold tasks correctly, or had none.
    repeats_same counts the repeated tasks with the same answer; it does not exclude workers,
    because a task can be a toss-up.
    """
    first = opinions[["worker", "task_id", "value"]]
    first = first.rename(columns={"task_id": "of", "value": "first_value"})
    # A worker's first answer to the task that is repeated.
    table = opinions.merge(first, on=["worker", "of"], how="left")
    is_right = table["answer"] == table["right"]
    table["gold"] = table["check"] == "gold"
    table["gold_right"] = table["gold"] & is_right
    table["repeats"] = table["first_value"].notna()
    # The value, not the answer: the sides of a repeat are reversed.
    table["repeats_same"] = table["first_value"] == table["value"]
    by_worker = table.groupby("worker")
    workers = by_worker["seconds"].agg(answers="size", seconds_mean="mean", seconds_median="median")
    checks = by_worker[["gold", "gold_right", "repeats", "repeats_same"]].sum()
    workers = workers.join(checks)
    is_unchecked = workers["gold"] == 0
    is_reliable = workers["gold_right"] >= keep * workers["gold"]
    workers["kept"] = is_unchecked | is_reliable
    return workers.reset_index()


def worker_counts(workers: pd.DataFrame) -> dict[str, int]:
    return {
        "answered": len(workers),
        "excluded": int((~workers["kept"]).sum()),
        "met_no_gold_task": int((workers["gold"] == 0).sum()),
    }


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
    kinds = dict(zip(tasks["task_id"], tasks["kind"], strict=True))
    answers, records, problems = collect(files, kinds)
    _log_problems(problems)
    require(len(answers), files[0], "no answer to the tasks", "give the answers to these tasks")
    contradictions = records["contradicts another"]
    if contradictions:
        log.warning(
            "warning: %d answers contradict another answer of the same worker; skipped",
            contradictions,
        )
    opinions = opinions_of(answers, tasks)
    workers = workers_of(opinions, keep)
    excluded = workers.loc[~workers["kept"], "worker"].tolist()
    if excluded:
        names = ", ".join(excluded)
        log.warning("warning: excluded for too many wrong gold tasks: %s", names)
    counted = opinions[~opinions["worker"].isin(excluded)]
    fault = (
        f"no answer to the study is left: {len(excluded)} of {len(workers)} workers missed "
        "too many gold tasks"
    )
    remedy = f"ask more people, or lower keep ({keep:g})"
    is_real_task = counted["check"] == "none"
    require(is_real_task.any(), files[0], fault, remedy)
    # Numbers, so that artifacts do not name the workers.
    numbers = np.arange(1, len(workers) + 1)
    numbered = workers.assign(worker=numbers)
    return counted, numbered.round(DECIMALS), dict(sorted(records.items()))


def _log_problems(problems: Sequence[str]) -> None:
    for problem in problems[:MAX_WARNINGS]:
        log.warning("warning: %s", problem)
    for problem in problems[MAX_WARNINGS:]:
        log.debug("skipped: %s", problem)
    if problems:
        log.warning("warning: %d faulty records skipped; the log lists them", len(problems))


def majorities(opinions: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task of the study: answers, fraction (the mean value; NaN without
    answers) and majority.

    majority is a generator, yes or no, prompt or other, or TIE; None without answers. Repeats are
    ignored. ``opinions`` are those of kept workers.
    """
    table = with_first(tasks[tasks["check"] == "none"])
    # Repeats would count a task twice.
    counted = opinions[opinions["check"] == "none"]
    values = counted.groupby("task_id")["value"].agg(answers="size", fraction="mean")
    table = table.join(values, on="task_id")
    # Tasks without answers stay in the table.
    table["answers"] = table["answers"].fillna(0).astype(int)
    winners = []
    for row in table.itertuples():
        one, zero = MAJORITY_NAMES.get(row.kind, (row.a, row.b))
        winners.append(one if row.fraction >= 0.5 else zero)
    majority = pd.Series(winners, table.index, dtype=object)
    majority = majority.mask(table["fraction"] == 0.5, TIE)
    return table.assign(majority=majority.where(table["fraction"].notna(), None))


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
    # Tasks about one generator's images are against none.
    forward = study.assign(generator=study["a"], against=study["b"].fillna(""))
    compared = forward[forward["kind"] == "perceptual"]
    # The same answers from the other generator's view.
    reverse = compared.assign(
        generator=compared["b"], against=compared["a"], value=1 - compared["value"]
    )
    # Once more against all other generators together.
    against_all = [compared.assign(against=ALL), reverse.assign(against=ALL)]
    views = pd.concat([forward, reverse, *against_all])
    rows = []
    for names, answers in with_all_splits(views).groupby(["kind", "generator", "against", "split"]):
        images = answers["image_id"].to_numpy(str)
        values = answers["value"].to_numpy(float)
        weights = np.ones(len(values))
        generator = rng(seed, "analyze", *names)
        estimate = interval.bootstrap_fraction(images, values, weights, resamples, generator)
        interval_columns = (estimate.value, estimate.low, estimate.high)
        counts = (len(answers), answers["task_id"].nunique(), answers["image_id"].nunique())
        rows.append((*names, *interval_columns, *counts))
    return pd.DataFrame(rows, columns=PREFERENCE_COLUMNS)
