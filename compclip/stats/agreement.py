"""Krippendorff's alpha of nominal answers, and Kendall's correlation of answers with scores."""

from typing import Any

import krippendorff
import numpy as np
import pandas as pd


def alpha(counts: np.ndarray) -> float | None:
    """Return the nominal alpha of counts (tasks, values); None if all answers are equal or no task
    has two.
    """
    paired = counts[counts.sum(axis=1) > 1]
    if (paired.sum(axis=0) > 0).sum() < 2:
        return None
    return float(krippendorff.alpha(value_counts=paired, level_of_measurement="nominal"))


def agreement(
    counts: np.ndarray, images: np.ndarray, resamples: int, generator: np.random.Generator
) -> dict[str, Any]:
    """Return alpha of counts (tasks, values), its interval over images (tasks,), and the number of
    tasks and images.
    """
    answered = counts.sum(axis=1) > 1
    counts = counts[answered]
    names = pd.Series(np.asarray(images)[answered].astype(str))
    by_image = list(names.groupby(names).indices.values())
    value, low, high = alpha(counts), None, None
    if value is not None and len(by_image) > 1:
        drawn = generator.integers(len(by_image), size=(resamples, len(by_image)))
        draws = [alpha(counts[np.concatenate([by_image[i] for i in row])]) for row in drawn]
        low, high = np.quantile([a for a in draws if a is not None], [0.025, 0.975]).tolist()
    return {"alpha": value, "low": low, "high": high, "tasks": len(counts), "images": len(by_image)}


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Kendall's tau-b of x and y (n,) in each resample, whose ``weights`` (B, n) are
    counts of entries.

    It is the correlation of the signs of all differences; NaN where a side does not vary.
    """
    signs_x, signs_y = (np.sign(np.subtract.outer(side, side)) for side in (x, y))
    concordance, varies_x, varies_y = (
        ((weights @ products) * weights).sum(axis=1)
        for products in (signs_x * signs_y, signs_x**2, signs_y**2)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return concordance / np.sqrt(varies_x * varies_y)


def resample_images(
    images: np.ndarray, resamples: int, generator: np.random.Generator
) -> np.ndarray:
    """Return (resamples, n): how often each entry's image is drawn, with replacement, as often as
    there are images.
    """
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    drawn = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), resamples)
    return drawn[:, index].astype(np.float64)
