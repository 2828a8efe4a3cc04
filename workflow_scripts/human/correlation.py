"""How a score goes with people's answers: Kendall's tau-b, Spearman's rho, the point-biserial r, over images.

A resample of images weights each entry with how often its image was drawn, so that thousands of resamples are a few
passes over a table of weights, in the order of the values: none sorts anew. The tests hold each against scipy on the
resample written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.human.opinions import ALL, TIE, prompt_key

STATISTICS = ("kendall", "spearman", "point_biserial")
DIGITS = 6

# Weights of 8 bytes that are in memory at once, with some tables of the same size made of them.
CELLS = 1 << 21


def signs(values: np.ndarray) -> np.ndarray:
    """(B, n, n) the sign of value i less value j, from (B, n); for few entries only."""
    return np.sign(values[:, :, None] - values[:, None, :])


def ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, n): for each i the weight of the entries below it less that of those above it.

    This is twice its rank but for a constant; entries of equal value have equal ranks. values: (n,), or (B, n) for
    few entries; weights: (B, n).
    """
    if values.ndim == 2:
        return (signs(values) @ weights[:, :, None])[:, :, 0]
    _, level = np.unique(values, return_inverse=True)
    totals = level_totals(level, weights)
    below = totals.cumsum(axis=1)
    return (2 * below - totals - below[:, -1:])[:, level]


def level_totals(level: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, k) the weights (B, n) of each of the levels 0 … k - 1, (n,); all of them must occur."""
    order = level.argsort(kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def concordance(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) the sum over all i and j of both weights times the signs of x_i - x_j and of y_i - y_j.

    x, y: (n,); weights: (B, n). Takes time in B n log k, k the fewer of the distinct values of x and of y.
    """
    x, y = (np.unique(values, return_inverse=True)[1] for values in (x, y))
    if x.max() < y.max():
        x, y = y, x
    order = np.lexsort((y, x))
    x, y, weights = x[order], y[order], weights[:, order]
    # Of i before j in this order, y_i and y_j first differ in one bit, the higher ones are alike: for each bit, among
    # those alike, j with 1 counts the i before it with 0 as concordant, and the i behind it as discordant.
    found = np.zeros(len(weights))
    for bit in range(int(y.max()).bit_length()):
        alike = (y >> bit + 1).argsort(kind="stable")
        starts = np.flatnonzero(np.diff(y[alike] >> bit + 1, prepend=-1))
        ones = (y[alike] >> bit & 1).astype(bool)
        part = weights[:, alike]
        zeros = np.where(ones, 0, part)
        before = zeros.cumsum(axis=1)
        of_zeros = np.add.reduceat(zeros, starts, axis=1)
        of_ones = np.add.reduceat(np.where(ones, part, 0), starts, axis=1)
        ended = of_zeros.cumsum(axis=1) - of_zeros  # zeros of the groups before
        found += 2 * ((part * before)[:, ones].sum(axis=1) - (of_ones * ended).sum(axis=1))
        found -= (of_zeros * of_ones).sum(axis=1)
    # Entries of equal x stand in the order of y, and were counted as concordant.
    cells = np.unique(x * (y.max() + 1) + y, return_inverse=True)[1]
    alike = (level_totals(x, weights) ** 2).sum(axis=1) - (level_totals(cells, weights) ** 2).sum(axis=1)
    return 2 * found - alike


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
    return pearson(ranks(x, weights), ranks(y, weights), weights)


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) tau-b: concordant less discordant pairs, over the pairs that are tied in neither. Shapes: ``pearson``."""
    if x.ndim == 2:
        of_x, of_y = signs(x), signs(y)
        both, in_x, in_y = (
            ((matrix @ weights[:, :, None])[:, :, 0] * weights).sum(axis=1)
            for matrix in (of_x * of_y, of_x * of_x, of_y * of_y)
        )
    else:
        both = concordance(x, y, weights)
        total = weights.sum(axis=1) ** 2
        in_x, in_y = (
            total - (level_totals(np.unique(v, return_inverse=True)[1], weights) ** 2).sum(axis=1) for v in (x, y)
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((in_x > 0) & (in_y > 0), both / np.sqrt(in_x * in_y), np.nan)


def image_weights(images: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """(resamples, n): how often each entry's image is drawn, of m draws among its m images."""
    return np.vstack([np.empty((0, len(images))), *weight_blocks(images, resamples, generator)])


def weight_blocks(images: np.ndarray, resamples: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """The rows of ``image_weights``, as many at a time as fit into ``CELLS``."""
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    chances = np.full(len(names), 1 / len(names))
    rows = max(1, CELLS // len(images))
    for start in range(0, resamples, rows):
        drawn = generator.multinomial(len(names), chances, size=min(rows, resamples - start))
        yield drawn[:, index].astype(np.float64)


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
