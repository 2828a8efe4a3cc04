"""Summarize the answers, the agreement of the workers, and the correlation of the scores with the
answers.

Answers of workers who fail too many tasks with a known answer are excluded and counted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.human.correlation import Scores, answer_correlations
from compclip.human.opinions import RESAMPLES, TIE, majorities, preferences, screen, worker_counts
from compclip.human.tasks import KINDS, PROMPT_COLUMNS
from compclip.stats.agreement import agreement


def kind_summary(
    kind: str, rows: pd.DataFrame, opinions: pd.DataFrame, seed: int
) -> dict[str, Any]:
    """Return counts, majorities, agreement and times of one kind of tasks.

    ``rows`` are as ``majorities`` returns them; ``opinions`` are those of kept workers, including
    checks.
    """
    answers = rows["answers"].to_numpy(int)
    # The fraction is a mean, so that its product with the number of answers is not exactly whole.
    ones = np.round(rows["fraction"].fillna(0) * rows["answers"]).to_numpy(int)
    # Answers of each value to each task, (n, 2).
    value_counts = np.stack([ones, answers - ones], axis=1)
    images = rows["image_id"].to_numpy()
    generator = rng(seed, "agreement", kind)
    majority_counts = rows["majority"].value_counts()
    ties = 0
    if TIE in majority_counts:
        ties = int(majority_counts.pop(TIE))
    seconds = opinions["seconds"]
    return {
        "tasks": len(rows),
        "answered": int((answers > 0).sum()),
        "answers": int(answers.sum()),
        "majorities": {str(name): int(n) for name, n in sorted(majority_counts.items())},
        "ties": ties,
        "agreement": agreement(value_counts, images, RESAMPLES, generator),
        "seconds_mean": seconds.mean(),
        "seconds_median": seconds.median(),
    }


def analyze(
    tasks: pd.DataFrame,
    answers: Sequence[Path],
    scores: Mapping[str, Scores],
    keep: float,
    seed: int,
) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Summarize the answers to a study.

    Args:
        tasks: as ``read_tasks`` returns them.
        answers: CSV files, as in ``answers``.
        scores: scores of the images by name, as ``run_scores`` returns them.
        keep: fraction of a worker's gold tasks that must be right for the answers to count.
        seed: seed of every random choice.

    Returns:
        Counts and agreement; and the tables tasks, workers, preferences and correlations.
    """
    opinions, workers, records = screen(tasks, answers, keep)
    answered = majorities(opinions, tasks)
    kinds = {}
    for kind in KINDS:
        rows = answered[answered["kind"] == kind]
        # A study may not have tasks of all kinds.
        if len(rows):
            kind_opinions = opinions[opinions["kind"] == kind]
            kinds[kind] = kind_summary(kind, rows, kind_opinions, seed)
            _log_kind(kind, kinds[kind])
    # Of all workers, excluded ones and gold tasks included.
    answer_count = int(workers["answers"].sum())
    excluded = answer_count - len(opinions)
    summary = {
        "seed": seed,
        "records": records,
        "answers": answer_count,
        "workers": {**worker_counts(workers), "keep": keep, "answers_excluded": excluded},
        "kinds": kinds,
    }
    columns = ["task_id", "kind", *PROMPT_COLUMNS, "a", "b", "answers", "fraction", "majority"]
    tables = {
        "tasks": answered[columns],
        "workers": workers,
        "preferences": preferences(opinions, RESAMPLES, seed),
        "correlations": answer_correlations(answered, scores, RESAMPLES, seed),
    }
    return summary, tables


def _log_kind(kind: str, summary: Mapping[str, Any]) -> None:
    alpha = summary["agreement"]["alpha"]
    log.info(
        "%s: %d answers to %d of %d tasks, %d ties, alpha %s",
        kind,
        summary["answers"],
        summary["answered"],
        summary["tasks"],
        summary["ties"],
        "undefined" if alpha is None else f"{alpha:.2f}",
    )
