"""Kendall's correlation of image scores with people's answers, with intervals over images."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import DECIMALS
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
        entries: columns image_id, score, fraction.
        mirrored: an entry compares two sides in arbitrary order, and so counts from both sides.
    """
    # Rounded, because floating-point differences break ties.
    scores = np.round(entries["score"].to_numpy(float), DECIMALS)
    fractions = np.round(entries["fraction"].to_numpy(float) - 0.5, DECIMALS)
    images = entries["image_id"].to_numpy(str)
    if mirrored:
        scores = np.concatenate([scores, -scores])
        fractions = np.concatenate([fractions, -fractions])
        images = np.tile(images, 2)
    # Each entry once, (1, n); then as often as its image is drawn, (resamples, n).
    (value,) = kendall(scores, fractions, np.ones((1, len(scores))))
    draws = kendall(scores, fractions, resample_images(images, resamples, generator))
    defined = draws[~np.isnan(draws)]
    # If many resamples have no correlation, the others are not a representative sample.
    if len(defined) >= max(1, MIN_DEFINED * len(draws)):
        low, high = np.quantile(defined, [0.025, 0.975])
    else:
        low = high = np.nan
    return {
        "value": value,
        "low": low,
        "high": high,
        "n": len(entries),
        "images": len(np.unique(images)),
    }


def _score(row: dict[str, Any], scores: Scores) -> float:
    """Return a task's score, NaN if there is none; a perceptual task's is the first image's minus
    the second's.
    """
    prompt = prompt_key(row)
    score = scores.get((row["a"], *prompt), np.nan)
    if row["kind"] != "perceptual":
        return score
    second = scores.get((row["b"], *prompt), np.nan)
    return score - second


def answer_correlations(
    tasks: pd.DataFrame, scores: Mapping[str, Scores], resamples: int, seed: int
) -> pd.DataFrame:
    """Return the correlation of each score with the answers to each kind of task, over all splits
    and by split.

    ``tasks`` are as ``opinions.majorities`` returns them; ``scores`` by name, generator and prompt
    (``prompt_key``).
    """
    rows = []
    answered = tasks[tasks["answers"] > 0]
    records = answered.to_dict("records")
    for name, score_by_image in scores.items():
        task_scores = [_score(row, score_by_image) for row in records]
        # Tasks whose images have no score have no part in it.
        scored = answered.assign(score=task_scores).dropna(subset="score")
        for (kind, split), entries in with_all_splits(scored).groupby(["kind", "split"]):
            if len(entries) < 2:
                continue
            generator = rng(seed, "analyze", "correlation", kind, name, split)
            is_comparison = kind == "perceptual"
            correlation = correlate_entries(entries, resamples, generator, mirrored=is_comparison)
            rows.append({"kind": kind, "split": split, "score": name, **correlation})
    return pd.DataFrame(rows, columns=CORRELATION_COLUMNS)
