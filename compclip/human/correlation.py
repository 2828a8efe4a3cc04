"""Kendall's correlation of image scores with people's answers, with intervals over images."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.human.opinions import with_all_splits
from compclip.human.tasks import PROMPT_COLUMNS, prompt_key
from compclip.stats.agreement import kendall, resample_images

MIN_DEFINED = 0.95  # least fraction of resamples with a correlation for an interval
RUN_SCORES = ("expected_top1", "similarity")  # columns of the run's scores
CORRELATION_COLUMNS = ["kind", "split", "score", "value", "low", "high", "n", "images"]
# By generator and prompt (``prompt_key``).
Scores = dict[tuple[Any, ...], float]


def run_scores(scores: pd.DataFrame) -> dict[str, Scores]:
    """Return a run's scores by name, averaged over judges; ``scores`` has generator, split and
    ``SCORES``.
    """
    images = scores.groupby(["generator", *PROMPT_COLUMNS])
    return {name: images[name].agg(fmean).to_dict() for name in RUN_SCORES}


def correlate_entries(
    entries: pd.DataFrame, resamples: int, generator: np.random.Generator, *, mirrored: bool = False
) -> dict[str, Any]:
    """Return the correlation of scores with answers over two entries or more: value, low, high, n
    and images.

    Args:
        entries: columns image_id, score, share.
        mirrored: an entry compares two sides in arbitrary order, and so counts from both sides.
    """
    sides = (1, -1) if mirrored else (1,)
    # Rounded, because floating-point differences break ties.
    score, share = (
        np.concatenate(
            [side * np.round(entries[name].to_numpy(float) - middle, DECIMALS) for side in sides]
        )
        for name, middle in (("score", 0), ("share", 0.5))
    )
    image = np.tile(entries["image_id"].to_numpy(str), len(sides))
    (value,) = kendall(score, share, np.ones((1, len(score))))
    draws = kendall(score, share, resample_images(image, resamples, generator))
    defined = draws[~np.isnan(draws)]
    # If many resamples have no correlation, the others are not a representative sample.
    enough = len(defined) >= max(1, MIN_DEFINED * len(draws))
    low, high = np.quantile(defined, [0.025, 0.975]) if enough else (np.nan, np.nan)
    return {
        "value": value,
        "low": low,
        "high": high,
        "n": len(entries),
        "images": len(np.unique(image)),
    }


def _score(row: dict[str, Any], scores: Scores) -> float:
    """Return a task's score, NaN if there is none; a perceptual task's is the first image's minus
    the second's.
    """
    score = scores.get((row["a"], *prompt_key(row)), np.nan)
    return score - (
        scores.get((row["b"], *prompt_key(row)), np.nan) if row["kind"] == "perceptual" else 0.0
    )


def answer_correlations(
    tasks: pd.DataFrame, scores: Mapping[str, Scores], resamples: int, seed: int
) -> pd.DataFrame:
    """Return the correlation of each score with the answers to each kind of task, over all splits
    and by split.

    ``tasks`` are as ``opinions.majorities`` returns them; ``scores`` by name, generator and prompt
    (``prompt_key``).
    """
    rows, answered = [], tasks[tasks["answers"] > 0]
    for name, known in scores.items():
        of_tasks = [_score(row, known) for row in answered.to_dict("records")]
        scored = with_all_splits(answered.assign(score=of_tasks).dropna(subset="score"))
        for (kind, split), entries in scored.groupby(["kind", "split"]):
            if len(entries) > 1:
                generator = rng(seed, "analyze", "correlation", kind, name, split)
                found = correlate_entries(
                    entries, resamples, generator, mirrored=kind == "perceptual"
                )
                rows.append({"kind": kind, "split": split, "score": name, **found})
    return pd.DataFrame(rows, columns=CORRELATION_COLUMNS)
