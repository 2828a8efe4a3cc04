"""R-precision from a matrix of similarities: how often is an image's own caption ranked first of a hundred?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from compclip.stats.r_precision import Entries, Judged, Ties, blocks, judge, make_pool


def r_precision(
    similarity: np.ndarray, own: np.ndarray, images: Sequence[Any], classes: Sequence[Any] | None = None, *,
    candidates: int = 100, ties: Ties = "random", seed: int = 0,
) -> Judged:  # fmt: skip
    """Rank each judged image's own caption among distractors (``stats.r_precision`` says how they are drawn).

    Args:
        similarity: (n, k) of judged images with captions; captions with equal texts have equal columns.
        own: (n,) the column of the caption that each judged image was made from.
        images: (k,) the id of the image that each caption describes.
        classes: (k,) its class, of which no caption is a distractor; None: each image is its own class.
        candidates: the own caption and the distractors.

    Returns:
        ``expected.mean()`` is the exact R-precision, ``hit.mean()`` the sampled one.
    """
    image, ids = pd.factorize(np.asarray(images, object), sort=True)
    of_class = image if classes is None else pd.factorize(np.asarray(classes, object), sort=True)[0]
    own = np.asarray(own)
    captions, draws = (pd.Series(numbers).groupby(numbers).cumcount().tolist() for numbers in (image, own))
    keys = [(str(ids[image[row]]), captions[row], draw) for row, draw in zip(own, draws, strict=True)]
    entries, texts = Entries(own, of_class[own], keys), len(image)
    pool, rows = make_pool(image, of_class, np.arange(texts)), blocks(lambda rows: similarity[rows], entries.classes)
    return judge(rows, texts, entries, pool, candidates=candidates, ties=ties, seed=seed)
