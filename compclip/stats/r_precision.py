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
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd

from compclip.core.errors import UserError, require
from compclip.core.seeds import derive_seed, rng
from compclip.core.settings.arguments import (
    Candidates,
    Indices,
    Matrix,
    Names,
    Whole,
    require_below,
    require_length,
)
from compclip.core.settings.calls import checked

Ties = Literal["random", "own_first"]
Chunking = Literal["even", "published"]
# Maps indices of entries, (b,), to their similarities with all distinct texts, (b, texts).
SimilaritiesOf = Callable[[np.ndarray], np.ndarray]
# Rows of entries, (b,), sorted by class, and their similarities with all distinct texts,
# (b, texts).
Blocks = Iterable[tuple[np.ndarray, np.ndarray]]

# Entries whose similarities are computed at once; fixed, because the shape may change the rounding
# of a product.
BLOCK = 256


@dataclass(frozen=True)
class Pool:
    """Images whose captions are distractors, sorted by class."""

    # (p + 1,); the captions of image i are ``texts[starts[i]:starts[i + 1]]``, at least one
    starts: np.ndarray
    texts: np.ndarray  # indices of distinct texts
    classes: np.ndarray  # (p,), not decreasing

    @property
    def images(self) -> int:
        return len(self.classes)

    def span(self, class_index: int) -> tuple[int, int]:
        """Return the first image of a class, and the end of its images."""
        low = np.searchsorted(self.classes, class_index, "left")
        high = np.searchsorted(self.classes, class_index, "right")
        return int(low), int(high)

    def require_others(self, classes: np.ndarray) -> None:
        """Raise UserError if all images are of one of these classes, (n,)."""
        pool_classes = np.unique(self.classes)
        if len(pool_classes) == 1 and pool_classes[0] in classes:
            lacking = "only one image" if self.images == 1 else "no image of another class"
            raise UserError(
                f"{lacking} in this split, so no distractors; add captions of other images or "
                "classes"
            )

    def eligible(self, class_index: int) -> int:
        """Return the number of possible distractors for an image of a class."""
        low, high = self.span(class_index)
        return len(self.texts) - int(self.starts[high] - self.starts[low])


def make_pool(images: np.ndarray, classes: np.ndarray, texts: np.ndarray) -> Pool:
    """Return a pool of captions, given the image, class and distinct text of each, as integers,
    (n,).

    Images keep the order of their numbers within a class, captions their order within an image.
    """
    order = np.lexsort((images, classes))  # stable
    images = images[order]
    first = np.flatnonzero(np.diff(images, prepend=-1))
    starts = np.append(first, len(images))
    return Pool(starts, texts[order], classes[order][first])


class Weights:
    """Integer weights of the distinct texts, (texts,): how often each is a distractor for a
    class.
    """

    def __init__(self, pool: Pool, texts: int) -> None:
        sizes = np.diff(pool.starts)
        # Each image has the weight ``unit``; each of its captions has an equal portion of it.
        unit = math.lcm(*map(int, np.unique(sizes)))
        if unit * pool.images >= 2**53:
            # Above 2^53, float64 rounds integers. Portions are rounded instead, by about 1e-9.
            unit = 2**53 // max(pool.images, 1)
        portions = np.repeat(unit // sizes, sizes)
        # Sums of integers are exact in any order, below 2^24 also in float32.
        dtype = np.float32 if portions.sum() < 2**24 else np.float64
        self.pool = pool
        self.portions = portions.astype(dtype)
        self.weights = np.bincount(pool.texts, portions, texts).astype(dtype)
        self.total = int(portions.sum())

    def of(self, class_index: int) -> tuple[np.ndarray, int]:
        """Return the weights (texts,) for a class, excluding its own captions, and their total."""
        low, high = self.pool.span(class_index)
        captions = slice(*self.pool.starts[[low, high]])
        portions = self.portions[captions]
        weights = self.weights.copy()
        # ``at`` subtracts each portion of a text that several captions have.
        np.subtract.at(weights, self.pool.texts[captions], portions)
        return weights, self.total - int(portions.sum(dtype=np.float64))


def expected_top1(
    beaten: np.ndarray, tied: np.ndarray, candidates: int = 100, ties: Ties = "random"
) -> np.ndarray:
    """Return the probability that the own caption is ranked first among ``candidates``, itself
    included.

    With the probabilities g (``beaten``) and t (``tied``) of one random distractor, and N
    candidates, it is ((1-g)^N - (1-g-t)^N) / (N t): the sum, over the number k of tied distractors,
    of its probability times 1 / (k + 1). With ``own_first``, as published, the own caption is
    ranked before tied ones: (1-g)^(N-1).
    """
    not_beaten = 1 - np.asarray(beaten, np.float64)
    unbeaten = not_beaten ** (candidates - 1)
    if ties == "own_first":
        return unbeaten
    tied = np.asarray(tied, np.float64)
    # (a^N - b^N) / (a - b) with b = a (1 - x) is a^(N-1) (1 - (1-x)^N) / x, which is accurate for
    # tiny x.
    x = np.zeros_like(not_beaten)
    np.divide(tied, not_beaten, out=x, where=not_beaten > 0)
    x = np.minimum(x, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        any_tie = -np.expm1(candidates * np.log1p(-x))
        won_ties = any_tie / (candidates * x)
    expected = unbeaten * won_ties
    return np.where(x > 0, expected, unbeaten)


def draw_distractors(uniform: np.ndarray, pool: Pool, classes: np.ndarray) -> np.ndarray:
    """Return k drawn captions (n, k), as indices of ``pool.texts``, for entries of these
    ``classes`` (n,), each of which has an eligible image.

    ``uniform`` (n, 2, k) are numbers in [0, 1): for each distractor, one for its image and one for
    its caption.
    """
    column = classes[:, None]
    low = np.searchsorted(pool.classes, column, "left")
    high = np.searchsorted(pool.classes, column, "right")
    size = high - low
    eligible = pool.images - size
    image = (uniform[:, 0] * eligible).astype(np.int64)
    # The images of the own class are in a row; those behind it are moved past it.
    image += np.where(image >= low, size, 0)
    n_captions = np.diff(pool.starts)[image]
    caption = (uniform[:, 1] * n_captions).astype(np.int64)
    return pool.starts[image] + caption


@dataclass(frozen=True)
class Entries:
    """Judged images: own texts (n,), classes (n,), and keys of their random streams (image,
    caption, draw).
    """

    own: np.ndarray
    classes: np.ndarray
    keys: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Draws:
    """The sampled distractors of n entries, which are the same for all judges."""

    captions: np.ndarray  # (n, candidates - 1), indices of ``Pool.texts``
    luck: np.ndarray  # (n,) numbers in [0, 1) that break ties


@dataclass(frozen=True)
class Judged:
    """The results of entries; all arrays are (n,)."""

    similarity: np.ndarray  # of the own caption
    beaten: np.ndarray  # probability that a random distractor is more similar
    tied: np.ndarray  # probability that it ties
    expected: np.ndarray  # probability of a hit
    hit: np.ndarray  # a sampled hit
    # the sampled candidate ranked first, as in published predictions; 0 is the own caption
    predicted: np.ndarray


def blocks(
    similarities: SimilaritiesOf, classes: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the blocks of all entries; ``similarities`` is always called with BLOCK entries."""
    order = np.argsort(classes, kind="stable")
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        # The last block is filled up with its own rows, which are then dropped.
        full_block = np.resize(rows, BLOCK)
        values = similarities(full_block)
        yield rows, values[: len(rows)]


def by_class(classes: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Yield each class of sorted ``classes`` (n,), and its rows."""
    is_first = np.diff(classes, prepend=-1)
    starts = np.flatnonzero(is_first)
    edges = [*starts.tolist(), len(classes)]
    for start, stop in pairwise(edges):
        yield int(classes[start]), slice(start, stop)


def weigh(
    values: np.ndarray, entries: Entries, rows: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the similarity (b,) of the own captions of a block's ``rows``, ``beaten`` and
    ``tied``, as in Judged.
    """
    from compclip.stats.kernels import sum_better

    own = entries.own[rows]
    similarity = np.take_along_axis(values, own[:, None], axis=1)[:, 0]
    beaten = np.zeros(len(rows))
    tied = np.zeros(len(rows))
    # The entries of a class have the same distractors.
    for class_index, span in by_class(entries.classes[rows]):
        text_weights, total = weights.of(class_index)
        # Slices are views, so this writes into ``beaten`` and ``tied``.
        sum_better(values[span], similarity[span], text_weights, beaten[span], tied[span])
        beaten[span] /= total
        tied[span] /= total
    return similarity, beaten, tied


def judge_entries(
    blocks: Blocks, entries: Entries, weights: Weights, draws: Draws, ties: Ties
) -> Judged:
    """Return the results of ``entries`` against the pool of ``weights``, in one pass over their
    blocks.
    """
    n = len(entries.own)
    similarity = np.zeros(n)
    beaten = np.zeros(n)
    tied = np.zeros(n)
    hit = np.zeros(n, bool)
    best_distractor = np.zeros(n, np.int64)
    for rows, values in blocks:
        own, beaten[rows], tied[rows] = weigh(values, entries, rows, weights)
        similarity[rows] = own
        drawn_texts = weights.pool.texts[draws.captions[rows]]
        distractors = np.take_along_axis(values, drawn_texts, axis=1)
        own_column = own[:, None]
        # A comparison with NaN is false, so NaN loses.
        hit[rows] = (distractors <= own_column).all(axis=1)
        if ties == "random":
            # The own caption is ranked first among k ties and itself with probability 1 / (k + 1).
            ties_and_own = (distractors == own_column).sum(axis=1) + 1
            hit[rows] &= draws.luck[rows] * ties_and_own < 1
        best_distractor[rows] = distractors.argmax(axis=1)
    # The entry's own caption is a candidate, too.
    candidates = draws.captions.shape[1] + 1
    expected = expected_top1(beaten, tied, candidates, ties)
    predicted = np.where(hit, 0, 1 + best_distractor)
    return Judged(similarity, beaten, tied, expected, hit, predicted)


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
    class_index = image
    if classes is not None:
        class_index, _ = pd.factorize(classes, sort=True)
    n_classes = pd.Series(class_index).groupby(image).nunique()
    require(n_classes.max() == 1, "classes", "an image has two classes", "give each image one")
    captions = _count_earlier(image)
    draws = _count_earlier(own)
    # An entry's stream depends on its image, the number of its caption, and of its draw.
    keys = [
        (str(ids[image[row]]), captions[row], draw) for row, draw in zip(own, draws, strict=True)
    ]
    entries = Entries(own, class_index[own], keys)
    pool = make_pool(image, class_index, np.arange(texts))
    # The kernel reads float32 and float64. Blocks are converted, so that the whole matrix is not
    # copied.
    dtype = np.float32 if np.can_cast(similarity.dtype, np.float32) else np.float64

    def similarities(rows: np.ndarray) -> np.ndarray:
        return similarity[rows].astype(dtype, copy=False)

    similarity_blocks = blocks(similarities, entries.classes)
    distractors = sample_distractors(entries, pool, candidates, seed)
    return judge_entries(similarity_blocks, entries, Weights(pool, texts), distractors, ties)


def _count_earlier(numbers: np.ndarray) -> list[int]:
    """Return how often each number occurs before."""
    return pd.Series(numbers).groupby(numbers).cumcount().tolist()


def sample_distractors(entries: Entries, pool: Pool, candidates: int, seed: int) -> Draws:
    """Return the sampled distractors of entries; those of an entry depend only on its key, the pool
    and the seed.

    Raises UserError if an entry has no eligible image.
    """
    pool.require_others(entries.classes)
    n = len(entries.own)
    # For each distractor an image and a caption; and one number that breaks ties.
    size = 2 * (candidates - 1) + 1
    captions = np.zeros((n, candidates - 1), np.int32)
    luck = np.zeros(n)
    for start in range(0, n, BLOCK):
        block = slice(start, start + BLOCK)
        digests = []
        for key in entries.keys[block]:
            entry_seed = derive_seed(seed, "distractors", *key)
            # SHAKE-128 is five times as fast as new generators.
            stream = hashlib.shake_128(entry_seed.to_bytes(8, "big"))
            digests.append(stream.digest(4 * size))
        integers = np.frombuffer(b"".join(digests), "<u4").reshape(-1, size)
        uniform = integers * 2.0**-32  # in [0, 1)
        choices = uniform[:, :-1].reshape(-1, 2, candidates - 1)
        captions[block] = draw_distractors(choices, pool, entries.classes[block])
        luck[block] = uniform[:, -1]
    return Draws(captions, luck)


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
    n = len(values)
    if n == 0 or (chunking == "published" and n < chunks):
        return None
    shuffled = rng(seed, "chunks").permutation(values)
    if chunking == "published":
        size = n // chunks
        means = shuffled[: size * chunks].reshape(chunks, size).mean(axis=1)
        return float(means.mean()), float(means.std())
    # Not more chunks than hits: an empty chunk has no mean.
    split = np.array_split(shuffled, min(chunks, n))
    means = [chunk.mean() for chunk in split]
    return float(values.mean()), float(np.std(means))
