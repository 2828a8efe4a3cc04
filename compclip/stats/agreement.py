"""Krippendorff's alpha of answers, and Kendall's correlation of answers with scores."""

from typing import Any, Literal

import krippendorff
import numpy as np
import pandas as pd

Level = Literal["nominal", "ordinal"]  # of measurement


def alpha(counts: np.ndarray, level: Level = "nominal") -> float | None:
    """Return alpha of counts (tasks, values); None if all answers are equal or no task has two.

    The values of ordinal answers are in ascending order.
    """
    # Alpha compares the answers to a task, so a task with one answer tells nothing.
    paired = counts[counts.sum(axis=1) > 1]
    is_given = paired.sum(axis=0) > 0
    if is_given.sum() < 2:
        return None
    return float(krippendorff.alpha(value_counts=paired, level_of_measurement=level))


def agreement(
    counts: np.ndarray,
    images: np.ndarray,
    resamples: int,
    generator: np.random.Generator,
    level: Level = "nominal",
) -> dict[str, Any]:
    """Return alpha of counts (tasks, values), its interval over images (tasks,), and the number of
    tasks and images.
    """
    answered = counts.sum(axis=1) > 1
    counts = counts[answered]
    names = pd.Series(np.asarray(images)[answered].astype(str))
    tasks_by_image = list(names.groupby(names).indices.values())
    n_images = len(tasks_by_image)
    value = alpha(counts, level)
    low = high = None
    if value is not None and n_images > 1:
        resampled = []
        for images_drawn in generator.integers(n_images, size=(resamples, n_images)):
            tasks = np.concatenate([tasks_by_image[image] for image in images_drawn])
            resampled.append(alpha(counts[tasks], level))
        # Equal answers by chance, in a resample, leave it without alpha.
        defined = [sample for sample in resampled if sample is not None]
        if defined:
            low, high = np.quantile(defined, [0.025, 0.975]).tolist()
    return {"alpha": value, "low": low, "high": high, "tasks": len(counts), "images": n_images}


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Kendall's tau-b of x and y (n,) in each resample, whose ``weights`` (B, n) are
    counts of entries.

    It is the correlation of the signs of all differences; NaN where x or y does not vary.
    """
    signs_x = _difference_signs(x)
    signs_y = _difference_signs(y)
    # Ties have the sign 0, and so leave the variances (tau-b).
    covariance = _sum_pairs(signs_x * signs_y, weights)
    variance_x = _sum_pairs(signs_x**2, weights)
    variance_y = _sum_pairs(signs_y**2, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        return covariance / np.sqrt(variance_x * variance_y)


def _difference_signs(values: np.ndarray) -> np.ndarray:
    return np.sign(np.subtract.outer(values, values))


def _sum_pairs(products: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Σ w_i w_j products_ij over all pairs of entries, for each row of weights."""
    return ((weights @ products) * weights).sum(axis=1)


def resample_images(
    images: np.ndarray, resamples: int, generator: np.random.Generator
) -> np.ndarray:
    """Return (resamples, n): how often each entry's image is drawn, with replacement, as often as
    there are images.
    """
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    n_images = len(names)
    chances = np.full(n_images, 1 / n_images)
    drawn = generator.multinomial(n_images, chances, resamples)
    return drawn[:, index].astype(np.float64)
