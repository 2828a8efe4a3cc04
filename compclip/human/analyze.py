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
    majority_counts = rows["majority"].value_counts()
    ones = np.round(rows["share"].fillna(0) * rows["answers"]).to_numpy(int)
    answers = np.stack([ones, rows["answers"].to_numpy(int) - ones], axis=1)
    return {
        "tasks": len(rows),
        "answered": int((rows["answers"] > 0).sum()),
        "answers": int(rows["answers"].sum()),
        "majorities": {
            str(name): int(n) for name, n in sorted(majority_counts.items()) if name != TIE
        },
        "ties": int(majority_counts.get(TIE, 0)),
        "agreement": agreement(
            answers, rows["image_id"].to_numpy(), RESAMPLES, rng(seed, "agreement", kind)
        ),
        "seconds_mean": opinions["seconds"].mean(),
        "seconds_median": opinions["seconds"].median(),
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
    kept, workers, records = screen(tasks, answers, keep)
    given = int(workers["answers"].sum())
    counted = majorities(kept, tasks)
    kinds = {
        kind: kind_summary(kind, counted[counted["kind"] == kind], kept[kept["kind"] == kind], seed)
        for kind in KINDS
        if (counted["kind"] == kind).any()
    }
    for kind, of_kind in kinds.items():
        alpha, counts = (
            of_kind["agreement"]["alpha"],
            (of_kind["answers"], of_kind["answered"], of_kind["tasks"]),
        )
        agreed = "undefined" if alpha is None else f"{alpha:.2f}"
        log.info(
            "%s: %d answers to %d of %d tasks, %d ties, alpha %s",
            kind,
            *counts,
            of_kind["ties"],
            agreed,
        )
    summary = {
        "seed": seed,
        "records": records,
        "answers": given,
        "workers": {**worker_counts(workers), "keep": keep, "answers_excluded": given - len(kept)},
        "kinds": kinds,
    }
    return summary, {
        "tasks": counted[
            ["task_id", "kind", *PROMPT_COLUMNS, "a", "b", "answers", "share", "majority"]
        ],
        "workers": workers,
        "preferences": preferences(kept, RESAMPLES, seed),
        "correlations": answer_correlations(counted, scores, RESAMPLES, seed),
    }
