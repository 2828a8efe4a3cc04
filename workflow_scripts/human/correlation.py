"""How scores correlate with people's answers, by entry and by cell, with intervals over images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.human.opinions import ALL, TIE, prompt_key
from workflow_scripts.stats.correlation import image_weights, kendall, pearson, spearman

STATISTICS = ("kendall", "spearman", "point_biserial")
DIGITS = 6


def _row(values: np.ndarray, draws: np.ndarray, n: int, images: int, level: str, statistic: str) -> dict[str, Any]:
    known = draws[~np.isnan(draws)]
    value = None if np.isnan(values[0]) else float(values[0])
    # Where many resamples have no correlation, those that have one are no sample of it.
    enough = value is not None and len(known) >= max(1, 0.95 * len(draws))
    low, high = np.quantile(known, [0.025, 0.975]).tolist() if enough else (None, None)
    return {"level": level, "statistic": statistic, "value": value, "low": low, "high": high, "n": n, "images": images}


def compare(
    entries: pd.DataFrame, resamples: int, generator: np.random.Generator, *, mirrored: bool = False
) -> list[dict[str, Any]]:
    """Correlations of entries (columns image_id, cell, score, share, majority) one by one and of the cells' means.

    majority: 1.0, 0.0, or NaN for a tie, which the point-biserial leaves out. mirrored: an entry sets one side
    against another, so that which comes first means nothing: each counts from both sides, and cells are not compared.
    """
    if len(entries) < 2:
        return []
    sides = (1, -1) if mirrored else (1,)
    # Rounded, since a difference of floats breaks ties.
    x, y, said = (
        np.concatenate([side * np.round(entries[name].to_numpy(float) - middle, DIGITS) for side in sides])
        for name, middle in (("score", 0), ("share", 0.5), ("majority", 0.5))
    )
    image = np.tile(entries["image_id"].to_numpy(str), len(sides))
    images = len(np.unique(image))
    weights = np.vstack([np.ones(len(x)), image_weights(image, resamples, generator)])
    rows = []
    for statistic in STATISTICS:
        if statistic == "point_biserial":
            clear = ~np.isnan(said)
            found = (
                pearson(x[clear], said[clear], weights[:, clear]) if clear.sum() > 1 else np.full(len(weights), np.nan)
            )
        else:
            found = {"kendall": kendall, "spearman": spearman}[statistic](x, y, weights)
        rows.append(_row(found[:1], found[1:], len(entries), images, "image", statistic))
    cells = np.unique(entries["cell"].to_numpy(str))
    if mirrored or len(cells) < 3:
        return rows
    member = (entries["cell"].to_numpy(str)[:, None] == cells).astype(float)
    totals = weights @ member
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [np.round((weights @ (member * v[:, None])) / totals, DIGITS) for v in (x, y)]
    # A resample may hold no image of a cell: that cell then counts for nothing.
    there = (totals > 0).astype(float)
    means = [np.nan_to_num(m) for m in means]
    for statistic, measure in (("kendall", kendall), ("spearman", spearman)):
        found = measure(*means, there)
        rows.append(_row(found[:1], found[1:], len(cells), images, "generator and split", statistic))
    return rows


def correlations(
    tasks: pd.DataFrame, scores: Mapping[str, Mapping[tuple[Any, ...], float]], resamples: int, seed: int
) -> pd.DataFrame:
    """Every score against the answers to every kind of task, over all splits and in each.

    tasks: as ``opinions.majorities`` gives them. scores[name]: by generator and prompt (``prompt_key``). Of
    perceptual tasks the difference of the two images' scores is taken.
    """
    rows = []
    answered = tasks[tasks["answers"] > 0]
    for kind, of_kind in answered.groupby("kind", sort=False):
        for name, known in scores.items():
            found = [
                (
                    known.get((row["a"], *prompt_key(row)), np.nan),
                    0.0 if kind != "perceptual" else known.get((row["b"], *prompt_key(row)), np.nan),
                )
                for row in of_kind.to_dict("records")
            ]
            first = {"perceptual": of_kind["a"], "match": "yes", "caption": "prompt"}[kind]
            entries = pd.DataFrame(
                {
                    "image_id": of_kind["image_id"],
                    "split": of_kind["split"],
                    "cell": of_kind["a"] + " " + of_kind["split"],
                    "score": [x - y for x, y in found],
                    "share": of_kind["share"],
                    "majority": np.where(of_kind["majority"] == TIE, np.nan, of_kind["majority"] == first),
                }
            )
            scored = entries.dropna(subset="score")
            for split in [
                ALL,
                *(s for s in ("test_seen", "test_unseen", "test_swapped") if (of_kind["split"] == s).any()),
            ]:
                part = scored if split == ALL else scored[scored["split"] == split]
                generator = rng(seed, "analyze", "correlation", kind, name, split)
                for row in compare(part, resamples, generator, mirrored=kind == "perceptual"):
                    rows.append({"kind": kind, "split": split, "score": name, **row})
    columns = ["kind", "split", "score", "level", "statistic", "value", "low", "high", "n", "images"]
    return pd.DataFrame(rows, columns=columns)
