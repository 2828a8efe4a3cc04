"""Scores of the images that people saw, and their correlations with people's answers, with intervals over images."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.records import read_records
from compclip.core.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.human.opinions import ALL, TIE, of_split, splits_of
from compclip.human.tasks import PROMPT, prompt_key
from compclip.stats.correlation import kendall, pearson, spearman, weight_blocks

STATISTICS = ("kendall", "spearman", "point_biserial")
MIN_DEFINED = 0.95  # fraction of resamples with a correlation below which there is no interval
# Columns of the run's scores, and what the figure calls them.
RUN_SCORES = {"expected_top1": "R-precision", "similarity": "similarity"}
# By generator and prompt (``prompt_key``).
Scores = dict[tuple[Any, ...], float]


def run_scores(scores: pd.DataFrame) -> dict[str, Scores]:
    """Return a run's scores by name, as means over judges; ``scores`` has generator, split and ``SCORES``."""
    images = scores.groupby(["generator", *PROMPT])
    return {name: images[name].agg(fmean).to_dict() for name in RUN_SCORES}


def other_scores(path: Path) -> Scores:
    """Read a score; raises UserError if a row has no number or repeats an image."""
    table, unreadable = read_records(path, ["generator", "split", "image_id", "caption_id", "score"], ["draw"])
    if unreadable:
        raise UserError(f"{path}: {unreadable[0]}; correct or remove this row")
    scores: Scores = {}
    for row in table.to_dict("records"):
        where = f"{path}: {row['where']}"
        try:
            image = (row["generator"], *prompt_key({"draw": 0, **row}))
            score = float(row["score"])
        except (TypeError, ValueError):
            raise UserError(f"{where}: caption_id, draw and score must be numbers") from None
        require(np.isfinite(score), where, f"score is {row['score']}", "remove rows without a score")
        require(image not in scores, where, "second score of this image", "tell draws apart in a column draw")
        scores[image] = round(score, DECIMALS)
    return scores


def _row(values: np.ndarray, n: int, images: int, level: str, statistic: str) -> dict[str, Any]:
    """Return a row of ``correlate_entries``; ``values`` (1 + resamples,) start with the statistic of all entries."""
    value = None if np.isnan(values[0]) else float(values[0])
    draws = values[1:]
    defined = draws[~np.isnan(draws)]
    # If many resamples have no correlation, those that have one are not a sample of it.
    enough = value is not None and len(defined) >= max(1, MIN_DEFINED * len(draws))
    low, high = np.quantile(defined, [0.025, 0.975]).tolist() if enough else (None, None)
    return {"level": level, "statistic": statistic, "value": value, "low": low, "high": high, "n": n, "images": images}


def correlate_entries(
    entries: pd.DataFrame, resamples: int, generator: np.random.Generator, *, mirrored: bool = False
) -> list[dict[str, Any]]:
    """Return the correlations of scores with answers over entries, and over the means of cells.

    Args:
        entries: columns image_id, cell, score, share, majority; majority is 1.0, 0.0, or NaN for a tie, which the
            point-biserial correlation omits.
        mirrored: an entry compares two sides whose order means nothing; each entry then counts from both sides, and
            cells are not compared.
    """
    if len(entries) < 2:
        return []
    sides = (1, -1) if mirrored else (1,)
    # Rounded, because a difference of floats breaks ties.
    score, share, majority = (
        np.concatenate([side * np.round(entries[name].to_numpy(float) - middle, DECIMALS) for side in sides])
        for name, middle in (("score", 0), ("share", 0.5), ("majority", 0.5))
    )
    image = np.tile(entries["image_id"].to_numpy(str), len(sides))
    images = len(np.unique(image))
    weights = np.vstack([np.ones(len(score)), *weight_blocks(image, resamples, generator)])
    clear = ~np.isnan(majority)
    values = {
        "kendall": kendall(score, share, weights),
        "spearman": spearman(score, share, weights),
        "point_biserial": pearson(score[clear], majority[clear], weights[:, clear])
        if clear.sum() > 1
        else np.full(len(weights), np.nan),
    }
    rows = [_row(values[name], len(entries), images, "image", name) for name in STATISTICS]
    cells = np.unique(entries["cell"].to_numpy(str))
    if mirrored or len(cells) < 3:
        return rows
    member = (entries["cell"].to_numpy(str)[:, None] == cells).astype(float)
    totals = weights @ member
    with np.errstate(divide="ignore", invalid="ignore"):
        # A resample without an image of a cell has no mean of it, and omits the cell.
        cell_score, cell_share = (
            np.nan_to_num(np.round((weights @ (member * v[:, None])) / totals, DECIMALS)) for v in (score, share)
        )
    occurs = (totals > 0).astype(float)
    for name, statistic in (("kendall", kendall), ("spearman", spearman)):
        rows.append(_row(statistic(cell_score, cell_share, occurs), len(cells), images, "generator and split", name))
    return rows


def _scores(rows: pd.DataFrame, scores: Scores) -> Iterator[float]:
    """Yield each task's score: NaN without one, and for a perceptual task the first image's less the second's."""
    for row in rows.to_dict("records"):
        score = scores.get((row["a"], *prompt_key(row)), np.nan)
        yield score - (scores.get((row["b"], *prompt_key(row)), np.nan) if row["kind"] == "perceptual" else 0.0)


def answer_correlations(tasks: pd.DataFrame, scores: Mapping[str, Scores], resamples: int, seed: int) -> pd.DataFrame:
    """Return the correlation of each score with the answers to each kind of task, over all splits and in each.

    ``tasks`` as from ``opinions.majorities``; ``scores`` by name, then by generator and prompt (``prompt_key``).
    """
    rows = []
    answered = tasks[tasks["answers"] > 0]
    for kind, of_kind in answered.groupby("kind", sort=False):
        first = {"perceptual": of_kind["a"], "match": "yes", "caption": "prompt"}[kind]
        entries = of_kind[["image_id", "split", "share"]].assign(
            cell=of_kind["a"] + " " + of_kind["split"],
            majority=np.where(of_kind["majority"] == TIE, np.nan, of_kind["majority"] == first),
        )
        for name, known in scores.items():
            scored = entries.assign(score=list(_scores(of_kind, known))).dropna(subset="score")
            for split in [ALL, *splits_of(of_kind)]:
                generator = rng(seed, "analyze", "correlation", kind, name, split)
                compared = correlate_entries(
                    of_split(scored, split), resamples, generator, mirrored=kind == "perceptual"
                )
                rows += [{"kind": kind, "split": split, "score": name, **row} for row in compared]
    columns = ["kind", "split", "score", "level", "statistic", "value", "low", "high", "n", "images"]
    return pd.DataFrame(rows, columns=columns)
