"""R-precision, exact and sampled: how often an image's own caption is ranked first of a hundred.

Pure functions of similarities, classes and seeds. The candidates of a judged image are its own
caption and distractors: an image, uniformly among the pool's images of other classes, then one of
its captions, uniformly, with replacement. Captions are identified by their texts, because equal
texts must tie exactly: the similarity of each distinct text is computed only once.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.inputs import (
    Candidates,
    Indices,
    Matrix,
    Names,
    Whole,
    checked,
    require_below,
    require_length,
)
from compclip.core.seeds import derive_seed, rng

Ties = Literal["random", "own_first"]
Chunking = Literal["even", "published"]
# Maps indices of entries, (b,), to their similarities with all distinct texts, (b, texts).
SimilaritiesOf = Callable[[np.ndarray], np.ndarray]
# Rows of entries, (b,), sorted by class, and their similarities with all distinct texts, (b,
# texts).
Blocks = Iterable[tuple[np.ndarray, np.ndarray]]

# Entries whose similarities are computed at once; fixed, because the shape may change the rounding
# of a product.
BLOCK = 256


@dataclass(frozen=True)
class Pool:
    """Images whose captions are distractors, sorted by class."""

    starts: (
        np.ndarray
    )  # (p + 1,); the captions of image i are ``texts[starts[i]:starts[i + 1]]``, at least one
    texts: np.ndarray  # indices of distinct texts
    classes: np.ndarray  # (p,), not decreasing

    @property
    def images(self) -> int:
        return len(self.classes)

    def span(self, of: int) -> tuple[int, int]:
        return int(np.searchsorted(self.classes, of, "left")), int(
            np.searchsorted(self.classes, of, "right")
        )

    def eligible(self, of: int) -> int:
        """Return the number of possible distractors for an image of class ``of``."""
        low, high = self.span(of)
        return len(self.texts) - int(self.starts[high] - self.starts[low])


def make_pool(images: np.ndarray, classes: np.ndarray, texts: np.ndarray) -> Pool:
    """Return a pool of captions, given the image, class and distinct text of each, as integers,
    (n,).

    Images keep the order of their numbers within a class, captions their order within an image.
    """
    order = np.lexsort((np.arange(len(images)), images, classes))
    images, classes, texts = images[order], classes[order], texts[order]
    first = np.flatnonzero(np.diff(images, prepend=-1))
    return Pool(np.append(first, len(images)), texts, classes[first])


class Weights:
    """Integer weights of the distinct texts, (texts,): how often each is a distractor for a
    class.
    """

    def __init__(self, pool: Pool, texts: int) -> None:
        sizes = np.diff(pool.starts)
        unit = math.lcm(*map(int, np.unique(sizes)))
        if (
            unit * pool.images >= 2**53
        ):  # above it float64 rounds integers; weights are then off by about 1e-9
            unit = 2**53 // max(pool.images, 1)
        portions = np.repeat(unit // sizes, sizes)
        # Sums of integers are exact in any order, below 2^24 also in float32.
        self.pool, self.portions = (
            pool,
            portions.astype(np.float32 if portions.sum() < 2**24 else np.float64),
        )
        self.weights = np.bincount(pool.texts, portions, texts).astype(self.portions.dtype)
        self.total = int(portions.sum())

    def of(self, of: int) -> tuple[np.ndarray, int]:
        """Return the weights (texts,) for class ``of``, excluding its own captions, and their
        total.
        """
        low, high = self.pool.span(of)
        if high - low == self.pool.images:
            lacking = "only one image" if high - low == 1 else "no image of another class"
            raise UserError(
                f"{lacking} in this split, so no distractors; add captions of other images or "
                "classes"
            )
        own = slice(*self.pool.starts[[low, high]])
        weights = self.weights.copy()
        np.subtract.at(weights, self.pool.texts[own], self.portions[own])
        return weights, self.total - int(self.portions[own].sum(dtype=np.float64))


def expected_top1(
    beaten: np.ndarray, tied: np.ndarray, candidates: int = 100, ties: Ties = "random"
) -> np.ndarray:
    """Return the probability that the own caption is ranked first among ``candidates``, itself
    included.

    With the probabilities g (``beaten``) and t (``tied``) of one random distractor, it is
    ((1-g)^N - (1-g-t)^N) / (N t): the sum, over the number k of tied distractors, of its
    probability times 1 / (k + 1). With ``own_first``, as published, the own caption is ranked
    before tied ones: (1-g)^(N-1).
    """
    rest = 1 - np.asarray(beaten, np.float64)
    first = rest ** (candidates - 1)
    if ties == "own_first":
        return first
    tied = np.asarray(tied, np.float64)
    # (a^N - b^N) / (a - b) with b = a (1 - x) is a^(N-1) (1 - (1-x)^N) / x, which is accurate for
    # tiny x.
    x = np.minimum(np.divide(tied, rest, out=np.zeros_like(rest), where=rest > 0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = -np.expm1(candidates * np.log1p(-x)) / (candidates * x)
    return np.where(x > 0, first * mean, first)


def draw_distractors(uniform: np.ndarray, pool: Pool, of: np.ndarray) -> np.ndarray:
    """Return k drawn distinct texts (n, k) for entries of classes ``of`` (n,), each of which has an
    eligible image.

    ``uniform`` (n, 2, k) are numbers in [0, 1): for each distractor, one for its image and one for
    its caption.
    """
    low = np.searchsorted(pool.classes, of, "left")[:, None]
    size = np.searchsorted(pool.classes, of, "right")[:, None] - low
    image = (uniform[:, 0] * (pool.images - size)).astype(np.int64)
    image += np.where(image >= low, size, 0)
    sizes = np.diff(pool.starts)
    return pool.texts[pool.starts[image] + (uniform[:, 1] * sizes[image]).astype(np.int64)]


@dataclass(frozen=True)
class Entries:
    """Judged images: own texts (n,), classes (n,), and keys of their random streams (image,
    caption, draw).
    """

    own: np.ndarray
    classes: np.ndarray
    keys: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Judged:
    """The results of entries; all arrays are (n,)."""

    similarity: np.ndarray  # of the own caption
    beaten: np.ndarray  # probability that a random distractor is more similar
    tied: np.ndarray  # probability that it ties
    expected: np.ndarray  # probability of a hit
    hit: np.ndarray  # a sampled hit
    predicted: (
        np.ndarray
    )  # the sampled candidate ranked first, as in published predictions; 0 is the own caption


def blocks(
    similarities: SimilaritiesOf, classes: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the blocks of all entries; ``similarities`` is always called with BLOCK entries."""
    order = np.argsort(classes, kind="stable")
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        yield rows, similarities(np.resize(rows, BLOCK))[: len(rows)]


def by_class(classes: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Yield each class of sorted ``classes`` (n,), and its rows."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    for of, start, stop in zip(
        classes[starts].tolist(), starts, np.append(starts[1:], len(classes)), strict=True
    ):
        yield of, slice(start, stop)


def weigh(
    values: np.ndarray, entries: Entries, rows: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the similarity (b,) of the own captions of a block's ``rows``, ``beaten`` and
    ``tied``, as in Judged.
    """
    from compclip.stats.kernels import sum_better

    own = np.take_along_axis(values, entries.own[rows, None], axis=1)[:, 0]
    beaten, tied = np.zeros(len(rows)), np.zeros(len(rows))
    for of, part in by_class(entries.classes[rows]):
        of_texts, total = weights.of(of)
        sum_better(values[part], own[part], of_texts, beaten[part], tied[part])
        beaten[part] /= total
        tied[part] /= total
    return own, beaten, tied


def judge_entries(
    blocks: Blocks,
    texts: int,
    entries: Entries,
    pool: Pool,
    *,
    candidates: int,
    ties: Ties,
    seed: int,
) -> Judged:
    """Return the results of ``entries`` against ``pool``, in one pass over their blocks.

    The sampled hit of an entry depends only on its key, the pool and the seed. Raises UserError if
    an entry has no eligible image.
    """
    n = len(entries.own)
    similarity, beaten, tied = np.zeros(n), np.zeros(n), np.zeros(n)
    hit, best = np.zeros(n, bool), np.zeros(n, np.int64)
    weights = Weights(pool, texts)
    for rows, values in blocks:
        own, beaten[rows], tied[rows] = weigh(values, entries, rows, weights)
        similarity[rows] = own
        drawn, luck = sample_distractors(entries, rows, pool, candidates, seed)
        of_drawn = np.take_along_axis(values, drawn, axis=1)
        # A comparison with NaN is false, so NaN loses.
        hit[rows] = (of_drawn <= own[:, None]).all(axis=1)
        if ties == "random":
            # The own caption is ranked first among k ties and itself with probability 1 / (k + 1).
            hit[rows] &= luck * ((of_drawn == own[:, None]).sum(axis=1) + 1) < 1
        best[rows] = 1 + of_drawn.argmax(axis=1)
    top1 = expected_top1(beaten, tied, candidates, ties)
    return Judged(similarity, beaten, tied, top1, hit, np.where(hit, 0, best))


@checked
def r_precision(
    similarity: Matrix,
    own: Indices,
    images: Names,
    classes: Names | None = None,
    *,
    candidates: Candidates = 100,
    ties: Ties = "random",
    seed: Whole = 0,
) -> Judged:
    """Rank each judged image's own caption among distractors, drawn as the module's docstring says.

    Source: Park et al., "Benchmark for Compositional Text-to-Image Synthesis" (NeurIPS 2021); the
    exact expectation over all draws of distractors is ours (``expected_top1``).

    Args:
        similarity: (n, k) of judged images with captions, of any real dtype, also a tensor;
            captions with equal texts have equal columns.
        own: (n,) the column of the caption that each judged image was made from.
        images: (k,) the id of the image that each caption describes.
        classes: (k,) the image's class, whose captions are not distractors; None: each image is its
            own class.
        candidates: number of candidates, including the own caption.
        ties: random: tied captions are ranked at random; own_first: the own one precedes them, as
            published.
        seed: of the sampled distractors.

    Returns:
        Arrays (n,): ``expected.mean()`` is the exact R-precision, ``hit.mean()`` the sampled one.

    Raises:
        UserError: no caption is of another class, or an argument is refused (docs/library.md).
    """
    n, texts = similarity.shape
    require_length(n, "images", own=own)
    require_length(texts, "captions", images=images, classes=classes)
    require_below(texts, "captions", own=own)
    own = own.astype(np.int64)
    image, ids = pd.factorize(images, sort=True)
    of_class = image if classes is None else pd.factorize(classes, sort=True)[0]
    is_one = pd.Series(of_class).groupby(image).nunique().max() == 1
    require(is_one, "classes", "an image has two classes", "give each image one")
    captions, draws = (
        pd.Series(numbers).groupby(numbers).cumcount().tolist() for numbers in (image, own)
    )
    keys = [
        (str(ids[image[row]]), captions[row], draw) for row, draw in zip(own, draws, strict=True)
    ]
    entries, pool = Entries(own, of_class[own], keys), make_pool(image, of_class, np.arange(texts))
    # The kernel reads float32 and float64; a whole matrix of another dtype is not copied.
    kind = np.float32 if np.can_cast(similarity.dtype, np.float32) else np.float64
    of_blocks = blocks(lambda rows: similarity[rows].astype(kind, copy=False), entries.classes)
    return judge_entries(
        of_blocks, texts, entries, pool, candidates=candidates, ties=ties, seed=seed
    )


def sample_distractors(
    entries: Entries, rows: np.ndarray, pool: Pool, candidates: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distractors (n, candidates - 1) of entries ``rows``, and numbers (n,) in [0, 1)
    that break ties.
    """
    k = candidates - 1
    seeds = [derive_seed(seed, "distractors", *entries.keys[row]) for row in rows]
    # SHAKE-128 is five times as fast as new generators.
    of_rows = [hashlib.shake_128(of.to_bytes(8, "big")).digest(4 * (2 * k + 1)) for of in seeds]
    uniform = np.frombuffer(b"".join(of_rows), "<u4").reshape(-1, 2 * k + 1) * 2.0**-32
    drawn = draw_distractors(uniform[:, :-1].reshape(len(rows), 2, k), pool, entries.classes[rows])
    return drawn, uniform[:, -1]


def sampled(
    hits: Iterable[bool], chunks: int, seed: int, chunking: Chunking = "even"
) -> tuple[float, float] | None:
    """Return mean and population standard deviation over shuffled chunks; None without hits.

    Args:
        chunking: ``published``: chunks of n // chunks hits, without the remainder, and the mean of
            their means; None for fewer hits than chunks, where the released code gives NaN.
            ``even``: chunk sizes differ by at most one, there are at most as many chunks as hits,
            and the mean is that of all hits. Both are equal if the number of chunks divides n.
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
