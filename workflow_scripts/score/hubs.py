"""Hubs: captions that are near to many images, and so are ranked first where they are wrong."""

import math

import numpy as np

from workflow_scripts.score.entries import Numbered
from workflow_scripts.stats.r_precision import Blocks, Weights, by_class

# Inverse temperature of the inverted softmax (Smith et al. 2017, "Offline bilingual word vectors").
BETA = 30.0
HUBS = 0.01  # fraction of the captions that count as hubs
# Similarities that are computed with at once, so that they stay in a core's cache.
TILE = 1 << 17


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


class InvertedSoftmax:
    """Similarities that a caption shares among images: log of its softmax over them, divided by beta.

    A caption that is near to all images comes no nearer to one of them. The images are the bank of QB-Norm (Bogolin et
    al. 2022), without its test whether a caption is a hub. They are those of ``rows``, (n,) booleans, and are added
    block by block first.
    """

    def __init__(self, texts: int, rows: np.ndarray) -> None:
        self.rows, self.total = rows, np.zeros(texts)

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        for _, tile in self.tiles(rows, values):
            tile *= BETA
            self.total += np.exp(tile, out=tile).sum(axis=0)

    def blocks(self, blocks: Blocks) -> Blocks:
        """Yield the blocks of these images with such similarities, in parts."""
        share = np.log(self.total) / BETA
        for rows, values in blocks:
            for of, tile in self.tiles(rows, values):
                tile -= share
                yield of, tile

    def tiles(self, rows: np.ndarray, values: np.ndarray) -> Blocks:
        """Yield the chosen rows and a copy of their similarities in float64, in parts that a core's cache holds."""
        chosen = np.flatnonzero(self.rows[rows])
        size = max(1, TILE // values.shape[1])
        for start in range(0, len(chosen), size):
            part = chosen[start : start + size]
            yield rows[part], values[part].astype(np.float64)
