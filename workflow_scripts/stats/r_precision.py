"""R-precision, exact and sampled: how often is an image's own caption ranked first of a hundred?

Everything here is a pure function of similarities, classes and seeds. The candidates of a judged image are its
own caption and distractors: an image uniformly among the pool's images of other classes, then one of its
captions uniformly, with replacement (facts: Protocol). Captions are counted by their distinct texts, since equal
texts must tie exactly: a similarity is computed once for each text and gathered.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.seeds import derive_seed, rng

Ties = Literal["random", "own_first"]
Chunking = Literal["even", "published"]
# Maps indices of entries (b,) to their similarities with all distinct texts (b, texts).
Similarities = Callable[[np.ndarray], np.ndarray]

# Entries whose similarities are held at once. Fixed: another shape may give a matrix product other last bits.
BLOCK = 256


@dataclass(frozen=True)
class Pool:
    """Images that lend their captions as distractors, sorted by class.

    starts (P + 1): the captions of image p are ``texts[starts[p]:starts[p + 1]]``, at least one. texts: indices
    of distinct captions. classes (P): not decreasing.
    """

    starts: np.ndarray
    texts: np.ndarray
    classes: np.ndarray

    @property
    def images(self) -> int:
        return len(self.classes)

    def span(self, of: int) -> tuple[int, int]:
        """The images of one class: from, to."""
        return int(np.searchsorted(self.classes, of, "left")), int(np.searchsorted(self.classes, of, "right"))

    def eligible(self, of: int) -> tuple[int, int]:
        """How many images, and captions of them, may be distractors for an image of class ``of``."""
        low, high = self.span(of)
        return self.images - (high - low), len(self.texts) - int(self.starts[high] - self.starts[low])


def make_pool(images: np.ndarray, classes: np.ndarray, texts: np.ndarray) -> Pool:
    """A pool from captions: each caption's image, class and distinct text, as integers, all of one length.

    Images keep the order of their numbers within a class; an image's captions keep their order.
    """
    order = np.lexsort((np.arange(len(images)), images, classes))
    images, classes, texts = images[order], classes[order], texts[order]
    first = np.flatnonzero(np.diff(images, prepend=-1))
    return Pool(np.append(first, len(images)), texts, classes[first])


def distractor_weights(pool: Pool, of: int, texts: int) -> tuple[np.ndarray, float]:
    """The chance of each distinct text to be the distractor of an image of class ``of``, times the second value.

    The shares of an image's captions are counted in units of one over the least common multiple of the images'
    numbers of captions: the weights are then whole numbers and sums of them exact, in whatever order.

    Returns ``(weights (texts,), total)``. Raises UserError where no image is eligible.
    """
    low, high = pool.span(of)
    left = pool.images - (high - low)
    if left == 0:
        raise UserError("no image of another class in this split: no distractors; add images or leave out classes")
    sizes = np.diff(pool.starts)
    unit: float = math.lcm(*map(int, np.unique(sizes)))
    # Beyond 2^53 whole numbers are not exact in float64 either: plain shares then.
    unit = float(unit) if unit * pool.images < 2**53 else 1.0
    shares = np.repeat(unit / sizes, sizes)
    keep = np.r_[0 : pool.starts[low], pool.starts[high] : len(pool.texts)]
    return np.bincount(pool.texts[keep], weights=shares[keep], minlength=texts), unit * left


def expected_top1(beaten: np.ndarray, tied: np.ndarray, candidates: int = 100, ties: Ties = "random") -> np.ndarray:
    """The chance that the own caption is ranked first among ``candidates``, itself included.

    With g (``beaten``) and t (``tied``) for one random distractor it is ``((1-g)^N - (1-g-t)^N) / (N t)``: the sum
    over k tied distractors of their chance times 1 / (k + 1). ``own_first`` ranks the own caption before its
    equals, as published: ``(1-g)^(N-1)``.
    """
    rest = 1 - np.asarray(beaten, np.float64)
    first = rest ** (candidates - 1)
    if ties == "own_first":
        return first
    tied = np.asarray(tied, np.float64)
    # (a^N - b^N) / (a - b) with b = a (1 - x) is a^(N-1) (1 - (1-x)^N) / x, which loses nothing for tiny x.
    share = np.minimum(np.divide(tied, rest, out=np.zeros_like(rest), where=rest > 0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = -np.expm1(candidates * np.log1p(-share)) / (candidates * share)
    return np.where(share > 0, first * mean, first)


def draw_distractors(uniform: np.ndarray, pool: Pool, of: np.ndarray) -> np.ndarray:
    """Distinct texts drawn for each entry, from uniform numbers in [0, 1).

    uniform (n, 2, k): for each distractor one number for its image and one for its caption. of (n,): classes of
    the entries, each with an eligible image. Returns (n, k).
    """
    low = np.searchsorted(pool.classes, of, "left")[:, None]
    size = np.searchsorted(pool.classes, of, "right")[:, None] - low
    image = (uniform[:, 0] * (pool.images - size)).astype(np.int64)
    image += np.where(image >= low, size, 0)
    sizes = np.diff(pool.starts)
    return pool.texts[pool.starts[image] + (uniform[:, 1] * sizes[image]).astype(np.int64)]


@dataclass(frozen=True)
class Entries:
    """Judged images: own (n,) distinct text, classes (n,), keys of their random streams (image, caption, draw)."""

    own: np.ndarray
    classes: np.ndarray
    keys: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Judged:
    """For each entry (n,): the own caption's similarity, the win probabilities, the chance and a draw of a hit.

    predicted: which of the drawn candidates is ranked first, as in published predictions: 0 is the own caption.
    """

    similarity: np.ndarray
    beaten: np.ndarray
    tied: np.ndarray
    expected: np.ndarray
    hit: np.ndarray
    predicted: np.ndarray


def judge(
    similarities: Similarities,
    texts: int,
    entries: Entries,
    pool: Pool,
    *,
    candidates: int,
    ties: Ties,
    seed: int,
) -> Judged:
    """Score ``entries`` against ``pool``.

    similarities is asked for BLOCK entries, always. Memory: a few blocks of BLOCK x texts numbers. The sampled hit
    of an entry depends on its own key, the pool and the seed alone. Raises UserError where an entry has no
    eligible image.
    """
    n = len(entries.own)
    similarity, beaten, tied = np.zeros(n), np.zeros(n), np.zeros(n)
    hit, best = np.zeros(n, bool), np.zeros(n, np.int64)
    # By class, so that the weights of a class are made once.
    order = np.argsort(entries.classes, kind="stable")
    weights_of: tuple[int, np.ndarray, float] | None = None
    for start in range(0, n, BLOCK):
        rows = order[start : start + BLOCK]
        values = similarities(np.resize(rows, BLOCK))[: len(rows)]
        own = np.take_along_axis(values, entries.own[rows, None], axis=1)
        above, equal = values > own, values == own
        classes = entries.classes[rows]
        for of in np.unique(classes):
            if weights_of is None or weights_of[0] != of:
                weights_of = (int(of), *distractor_weights(pool, int(of), texts))
            _, weights, total = weights_of
            part = classes == of
            beaten[rows[part]] = above[part] @ weights / total
            tied[rows[part]] = equal[part] @ weights / total
        similarity[rows] = own[:, 0]
        drawn, luck = sample_distractors(entries, rows, pool, candidates, seed)
        drawn_above, drawn_equal = (np.take_along_axis(part, drawn, axis=1) for part in (above, equal))
        hit[rows] = is_hit(drawn_above, drawn_equal, luck, ties)
        best[rows] = 1 + np.take_along_axis(values, drawn, axis=1).argmax(axis=1)
    beaten = np.clip(beaten, 0, 1)
    tied = np.clip(tied, 0, 1 - beaten)
    expected = expected_top1(beaten, tied, candidates, ties)
    return Judged(similarity, beaten, tied, expected, hit, np.where(hit, 0, best))


def uniforms(seeds: Iterable[int], k: int) -> np.ndarray:
    """(n, k) multiples of 2^-32 in [0, 1), a row a seed: SHAKE-128, which needs a fifth of a new generator's time."""
    rows = [hashlib.shake_128(of.to_bytes(8, "big")).digest(4 * k) for of in seeds]
    return np.frombuffer(b"".join(rows), "<u4").reshape(-1, k) * 2.0**-32


def sample_distractors(
    entries: Entries, rows: np.ndarray, pool: Pool, candidates: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """``(texts (n, candidates - 1), luck (n,))`` of some entries, each from its own key and the seed alone.

    luck, in [0, 1), settles ties.
    """
    k = candidates - 1
    uniform = uniforms([derive_seed(seed, "distractors", *entries.keys[row]) for row in rows], 2 * k + 1)
    drawn = draw_distractors(uniform[:, :-1].reshape(len(rows), 2, k), pool, entries.classes[rows])
    return drawn, uniform[:, -1]


def is_hit(above: np.ndarray, equal: np.ndarray, luck: np.ndarray, ties: Ties) -> np.ndarray:
    """(n,) whether the own caption is ranked first, where distractors (n, k) are above or equal to it."""
    hit = ~above.any(axis=1)
    # First among itself and its k equals with chance 1 / (k + 1).
    return hit if ties == "own_first" else hit & (luck * (equal.sum(axis=1) + 1) < 1)


def sampled(hits: Iterable[bool], chunks: int, seed: int, chunking: Chunking = "even") -> tuple[float, float] | None:
    """Mean and population standard deviation over shuffled chunks; None without hits.

    ``published``: chunks of n // chunks hits each, the remainder lost, and the mean of the chunks' means; None for
    fewer hits than chunks, where the released code gives NaN. ``even``: the chunks' sizes differ by one where they
    must, there are never more chunks than hits, and the mean is that of all hits. Where the number of chunks
    divides n, the two are equal.
    """
    values = np.array(list(hits), dtype=np.float64)
    if not len(values) or (chunking == "published" and len(values) < chunks):
        return None
    shuffled = rng(seed, "chunks").permutation(values)
    if chunking == "published":
        means = shuffled[: len(values) // chunks * chunks].reshape(chunks, -1).mean(axis=1)
        return float(means.mean()), float(means.std())
    means = [chunk.mean() for chunk in np.array_split(shuffled, min(chunks, len(values)))]
    return float(values.mean()), float(np.std(means))
