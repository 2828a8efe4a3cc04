"""Report how often people choose the compound's picture, in total and by compound, and how much
they agree.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), section
5.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.human.opinions import RESAMPLES, screen, worker_counts
from compclip.stats import interval
from compclip.stats.agreement import agreement


def analyze_people(
    tasks: pd.DataFrame, answers: Sequence[Path], keep: float, seed: int
) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """Summarize people's answers to tasks about compounds; the arguments are those of
    ``human.analyze``.

    Returns:
        The summary, with the mean over workers of their fractions of right answers (accuracy), and
        its interval over compounds; for each compound, the number of answers and the fraction that
        chose its picture (columns compound, answers, fraction); and the workers, by number.
    """
    counted, workers, records = screen(tasks, answers, keep)
    study = counted[counted["check"] == "none"]  # without tasks whose answer is known
    by_compound = study.groupby("image_id")["value"].agg(answers="size", fraction="mean")
    # The same weight for every worker, however many tasks each has answered.
    answers_of_worker = study.groupby("worker")["worker"].transform("size")
    weights = 1 / answers_of_worker.to_numpy(float)
    compounds = study["image_id"].to_numpy(str)
    right = study["value"].to_numpy()
    accuracy = interval.bootstrap_fraction(
        compounds, right, weights, RESAMPLES, rng(seed, "analyze_people")
    )
    percentage = 100 * accuracy.value
    log.info("people are right in %.1f %%, mean of %d workers", percentage, workers["kept"].sum())
    votes = pd.crosstab(study["image_id"], study["answer"])
    generator = rng(seed, "people", "compound")
    summary = {
        "seed": seed,
        "records": records,
        "workers": worker_counts(workers),
        "keep": keep,
        "accuracy": {**asdict(accuracy), "n": len(by_compound)},
        "tasks": int((tasks["check"] == "none").sum()),
        "answers": len(study),
        "agreement": agreement(votes.to_numpy(), votes.index.to_numpy(), RESAMPLES, generator),
    }
    return summary, by_compound.rename_axis("compound").reset_index(), workers
