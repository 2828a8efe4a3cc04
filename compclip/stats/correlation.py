"""Kendall's correlation of a score with people's answers, and its bootstrap over images.

A bootstrap is a matrix of weights: row by row, how often each resample draws each entry's image.
"""

import numpy as np


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (B,): Kendall's tau-b of x and y (n,) in each resample, whose ``weights`` (B, n) are counts of entries.

    It is the correlation of the signs of all differences; NaN where a side does not vary.
    """
    signs_x, signs_y = (np.sign(np.subtract.outer(side, side)) for side in (x, y))
    agreement, varies_x, varies_y = (
        ((weights @ products) * weights).sum(axis=1) for products in (signs_x * signs_y, signs_x**2, signs_y**2)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return agreement / np.sqrt(varies_x * varies_y)


def resample_images(images: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return (resamples, n): how often each entry's image is drawn, with replacement, as often as there are images."""
    names, index = np.unique(np.asarray(images, dtype=str), return_inverse=True)
    drawn = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), resamples)
    return drawn[:, index].astype(np.float64)
