"""How a score goes with people's answers: Kendall's tau-b, Spearman's rho, the point-biserial r, over images.

All three come from the matrices of the signs of differences, so that thousands of resamples of images are a few
products of matrices: a resample weights each entry with how often its image was drawn. The tests hold each against
scipy on the resample written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.common.seeds import rng
from workflow_scripts.human.opinions import ALL, TIE, prompt_key

STATISTICS = ("kendall", "spearman", "point_biserial")
DIGITS = 6


def signs(values: np.ndarray) -> np.ndarray:
    """(..., n, n) the sign of value i less value j, from (..., n)."""
    return np.sign(values[..., :, None] - values[..., None, :])


def _sums(weights: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """(B, n): for each i the sum over j of weight j times matrix ij; the matrix is (n, n), or one for each B."""
    if matrix.ndim == 2:
        return weights @ matrix.T
    return (matrix @ weights[:, :, None])[:, :, 0]


def pearson(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) the weighted correlation; NaN where a side does not vary. x, y: (B, n) or (n,); weights: (B, n)."""
    total = weights.sum(axis=1, keepdims=True)
    x, y = (v - (weights * v).sum(axis=1, keepdims=True) / total for v in (x, y))
    spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Beside rounding, no spread is none.
        return np.where(spread > 1e-20, (weights * x * y).sum(axis=1) / np.sqrt(spread), np.nan)


def spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) as ``pearson``, of the ranks; entries of equal value share the mean of their ranks."""
    # The sum of signs is twice the rank, but for a constant.
    return pearson(_sums(weights, signs(x)), _sums(weights, signs(y)), weights)


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) tau-b: concordant less discordant pairs, over the pairs that are tied in neither."""
    of_x, of_y = signs(x), signs(y)
    both, in_x, in_y = (
        (_sums(weights, matrix) * weights).sum(axis=1) for matrix in (of_x * of_y, of_x * of_x, of_y * of_y)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((in_x > 0) & (in_y > 0), both / np.sqrt(in_x * in_y), np.nan)


def image_weights(images: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """(resamples, n): how often each entry's image is drawn, of m draws among its m images."""
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    drawn = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    return drawn[:, index].astype(np.float64)


def _row(values: np.ndarray, draws: np.ndarray, n: int, images: int, level: str, statistic: str) -> dict[str, Any]:
    known = draws[~np.isnan(draws)]
    value = None if np.isnan(values[0]) else float(values[0])
    low, high = np.quantile(known, [0.025, 0.975]).tolist() if value is not None and len(known) else (None, None)
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
