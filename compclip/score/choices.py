"""Adjective accuracy: how often a judge ranks a prompt above its variants, which differ in one adjective alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

CAPTION_KEY = ["image_id", "caption_id"]
# Entries whose variants are compared at once.
COMPARED_AT_ONCE = 1024


@dataclass(frozen=True)
class Choices:
    """For each entry (n,), how well its own adjective is chosen; chances are NaN where there is no other."""

    adjectives: np.ndarray  # to choose from, the own included
    first: np.ndarray  # the chance that the own is ranked first
    two_way: np.ndarray  # the chance that it is ranked above one of the others, drawn at random


def variants_of_entries(entries: pd.DataFrame, split: str, variants: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (m,): an entry's row, and the row of a variant of its prompt, by entry."""
    of_split = variants.assign(variant=range(len(variants))).loc[variants["split"] == split, [*CAPTION_KEY, "variant"]]
    rows = entries[CAPTION_KEY].assign(entry=range(len(entries))).merge(of_split, on=CAPTION_KEY)
    rows = rows.sort_values(["entry", "variant"])
    return rows["entry"].to_numpy(), rows["variant"].to_numpy()


def adjective_accuracy(own: np.ndarray, of_variants: np.ndarray, entry: np.ndarray) -> Choices:
    """Compare each image's similarity with its prompt to those with the prompt's variants, ties at random.

    Args:
        own: (n,) the similarity of each image with its prompt.
        of_variants: (m,) similarities of images with variants of their prompts.
        entry: (m,) the image of each.

    Returns:
        Arrays (n,): ``np.nanmean(first)`` is the adjective accuracy; chance is the mean of ``1 / adjectives`` where
        that is below 1.
    """
    n = len(own)
    others, better, tied = (
        np.bincount(entry, weights=weights, minlength=n)
        for weights in (None, of_variants > own[entry], of_variants == own[entry])
    )
    first = np.where(better > 0, 0.0, 1 / (1 + tied))
    with np.errstate(invalid="ignore"):
        two_way = 1 - (better + tied / 2) / others
    return Choices(others.astype(np.int64) + 1, np.where(others > 0, first, np.nan), two_way)


def gathered(images: np.ndarray, texts: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the function from rows of ``images`` (n, d) and rows of ``texts`` (k, d) to the cosine of each two."""

    def cosines(image: np.ndarray, text: np.ndarray) -> np.ndarray:
        blocks = (slice(start, start + COMPARED_AT_ONCE) for start in range(0, len(image), COMPARED_AT_ONCE))
        products = [np.einsum("nd,nd->n", images[image[block]], texts[text[block]]) for block in blocks]
        return np.concatenate(products) if products else np.zeros(0, images.dtype)

    return cosines
