"""Hubs: captions that are near to many images, and so are ranked first where they are wrong."""

from __future__ import annotations

import math

import numpy as np

from workflow_scripts.score.entries import Numbered
from workflow_scripts.stats.r_precision import BLOCK, Similarities, distractor_weights

# Inverse temperature of the inverted softmax (Smith et al. 2017, "Offline bilingual word vectors").
BETA = 30.0
HUBS = 0.01  # fraction of the captions that count as hubs


def hubness(similarities: Similarities, texts: int, numbered: Numbered) -> float | None:
    """Return the fraction of wrong first ranks that the most frequent 1 % of the pool's captions take; None if none.

    The candidates of an image are its own caption and all captions of the pool of other classes; texts: their number.
    """
    entries, pool = numbered.entries, numbered.pool
    wins = np.zeros(texts, np.int64)
    order = np.argsort(entries.classes, kind="stable")
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        values = similarities(np.resize(rows, BLOCK))[: len(rows)]
        own, classes = values[np.arange(len(rows)), entries.own[rows]], entries.classes[rows]
        for of in np.unique(classes):
            eligible = distractor_weights(pool, int(of), texts)[0] > 0
            candidates = np.where(eligible, values[classes == of], -np.inf)
            wrong = candidates.max(axis=1) > own[classes == of]
            np.add.at(wins, candidates.argmax(axis=1)[wrong], 1)
    hubs = math.ceil(HUBS * len(np.unique(pool.texts)))
    return float(np.sort(wins)[-hubs:].sum() / wins.sum()) if wins.any() else None


def inverted_softmax(similarities: Similarities, n: int) -> Similarities:
    """Return similarities that a caption shares among the ``n`` images: log of its softmax over them, divided by beta.

    A caption that is near to all images comes no nearer to one of them. The images are the bank of QB-Norm (Bogolin et
    al. 2022), without its test whether a caption is a hub.
    """
    total = np.zeros(1)
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        values = similarities(np.resize(rows, BLOCK))[: len(rows)]
        total = total + np.exp(BETA * values.astype(np.float64)).sum(axis=0)
    return lambda rows: similarities(rows) - np.log(total) / BETA
