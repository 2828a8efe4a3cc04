"""Hubs: captions that are near to many images, and so are ranked first where they are wrong."""

import math

import numpy as np

from workflow_scripts.score.entries import Numbered
from workflow_scripts.stats.r_precision import Weights, by_class

HUBS = 0.01  # fraction of the captions that count as hubs


class Nearest:
    """The captions that wrongly rank first, collected block by block.

    The candidates of an image are its own caption and all captions of the pool of other classes; texts: their number.
    """

    def __init__(self, texts: int, numbered: Numbered) -> None:
        self.texts, self.numbered, self.weights = texts, numbered, Weights(numbered.pool, texts)
        self.wrong = np.full(len(numbered.entries.own), -1)  # the caption ranked first, -1 for the own one

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        entries = self.numbered.entries
        for of, part in by_class(entries.classes[rows]):
            no_candidates = np.flatnonzero(self.weights.of(of)[0] == 0)
            of_class, each = values[part], np.arange(part.stop - part.start)
            own, kept = of_class[each, entries.own[rows[part]]], of_class[:, no_candidates]
            of_class[:, no_candidates] = -np.inf
            best = of_class.argmax(axis=1)
            self.wrong[rows[part]] = np.where(of_class[each, best] > own, best, -1)
            of_class[:, no_candidates] = kept

    def hubness(self, rows: np.ndarray) -> float | None:
        """Return which fraction of the wrong first ranks of ``rows`` the most frequent 1 % of the captions take."""
        wins = np.bincount(self.wrong[rows][self.wrong[rows] >= 0], minlength=self.texts)
        hubs = math.ceil(HUBS * len(np.unique(self.numbered.pool.texts)))
        return float(np.sort(wins)[-hubs:].sum() / wins.sum()) if wins.any() else None
