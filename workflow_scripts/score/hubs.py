"""Hubs: captions that are near to many images, and so are ranked first where they are wrong."""

from __future__ import annotations

import math

import numpy as np

from workflow_scripts.score.entries import Numbered
from workflow_scripts.stats.r_precision import BLOCK, Similarities, Weights, blocks, by_class

# Inverse temperature of the inverted softmax (Smith et al. 2017, "Offline bilingual word vectors").
BETA = 30.0
HUBS = 0.01  # fraction of the captions that count as hubs


def hubness(similarities: Similarities, texts: int, numbered: Numbered) -> float | None:
    """Return the fraction of wrong first ranks that the most frequent 1 % of the pool's captions take; None if none.

    The candidates of an image are its own caption and all captions of the pool of other classes; texts: their number.
    """
    entries, pool = numbered.entries, numbered.pool
    wins, weights = np.zeros(texts, np.int64), Weights(pool, texts)
    for rows, values in blocks(similarities, entries.classes):
        own = np.take_along_axis(values, entries.own[rows, None], axis=1)[:, 0]
        for of, part in by_class(entries.classes[rows]):
            of_class, no_candidates = values[part], weights.of(of)[0] == 0
            of_class[:, no_candidates] = -np.inf
            best = of_class.argmax(axis=1)
            np.add.at(wins, best[np.take_along_axis(of_class, best[:, None], axis=1)[:, 0] > own[part]], 1)
    hubs = math.ceil(HUBS * len(np.unique(pool.texts)))
    return float(np.sort(wins)[-hubs:].sum() / wins.sum()) if wins.any() else None


def inverted_softmax(similarities: Similarities, texts: int, n: int) -> Similarities:
    """Return similarities that a caption shares among the ``n`` images: log of its softmax over them, divided by beta.

    A caption that is near to all images comes no nearer to one of them. The images are the bank of QB-Norm (Bogolin et
    al. 2022), without its test whether a caption is a hub. The next call overwrites what the last returned.
    """
    total, block = np.zeros(texts), np.empty((BLOCK, texts))
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        values = similarities(np.resize(rows, BLOCK))[: len(rows)]
        powers = np.multiply(values, BETA, out=block[: len(rows)], dtype=np.float64)
        total += np.exp(powers, out=powers).sum(axis=0)
    share = np.log(total) / BETA
    return lambda rows: np.subtract(similarities(rows), share, out=block)
