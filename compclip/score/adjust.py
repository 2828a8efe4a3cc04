"""Choose the multiple of a text's mean similarity by which its similarities are adjusted.

A contrastive judge learns how frequent an adjective is with a noun, so it prefers frequent ones
whatever an image shows. A text's mean similarity over the calibration images (real images that are
judged) measures this preference. The subtracted multiple of it maximizes the accuracy on seen pairs
of real images, averaged over adjectives: a rare adjective counts as much as a frequent one. For a
seen pair, it is chosen without this pair, so that seen pairs have no advantage over held-out ones,
whose labels are not used.
"""

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import split_pair
from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY
from compclip.score.choices import Adjustment, Embed, compare_texts, options_of
from compclip.score.entries import real_entries

# Choices: quarters, because the accuracy changes slowly with the multiple; the mean of 512 images
# has a 23rd of the spread of a single one.
MULTIPLES = (0.0, 0.25, 0.5, 0.75, 1.0)
CALIBRATION_IMAGES = 512


def calibration_images(prompts: pd.DataFrame, images: pd.DataFrame, seed: int) -> list[str]:
    """Return the paths of at most 512 real images of seen and unseen prompts, drawn with the
    seed.
    """
    splits = ("test_seen", "test_unseen")
    entries = pd.concat([real_entries(prompts, images, split) for split in splits])
    # Sorted, so that the draw does not depend on the order of the tables.
    paths = np.array(sorted(set(entries["path"])), dtype=object)
    # The name of the stream decides the draw, so it stays.
    drawn = rng(seed, "reference_images").permutation(paths)[:CALIBRATION_IMAGES]
    return sorted(drawn.tolist())


def best_multiple(accuracy: np.ndarray, adjectives: np.ndarray) -> float:
    """Return the smallest multiple with the greatest mean accuracy over adjectives; 0 without
    entries.

    Args:
        accuracy: (p pairs, multiples + 1) sums of accuracies, and the numbers of entries.
        adjectives: (p,) the adjective of each pair.
    """
    if len(accuracy) == 0:
        return MULTIPLES[0]
    names, number = np.unique(adjectives, return_inverse=True)
    sums = np.zeros((len(names), accuracy.shape[1]))
    np.add.at(sums, number, accuracy)
    # Over adjectives, so that a rare one counts as much as a frequent one. Rounded, so that the
    # last bits do not decide.
    means = (sums[:, :-1] / sums[:, -1:]).mean(axis=0).round(DECIMALS)
    return MULTIPLES[int(means.argmax())]


def choose_adjustment(
    prompts: pd.DataFrame,
    images: pd.DataFrame,
    variants: pd.DataFrame,
    embed_texts: Embed,
    embed_images: Embed,
    seed: int = 0,
) -> Adjustment | None:
    """Return how a judge's similarities are adjusted; None if there are no seen prompts with
    variants and a real image.

    Args:
        prompts, images, variants: columns of ``PROMPTS``, ``IMAGES`` and ``VARIANTS`` in
            ``tables``.
        embed_texts: maps n texts to their embeddings by the judge, (n, d), of unit length.
        embed_images: the same for paths in ``images``.
        seed: draws the calibration images.
    """
    # Without variants, there is nothing to choose from.
    of_seen = variants.loc[variants["split"] == "test_seen", CAPTION_KEY].drop_duplicates()
    entries = real_entries(prompts, images, "test_seen").merge(of_seen)
    if entries.empty:
        return None
    calibration = embed_images(calibration_images(prompts, images, seed))
    # Summed in float64, since the mean of many float32 vectors would lose digits.
    mean = calibration.mean(axis=0, dtype=np.float64).astype(np.float32)
    embeddings = embed_images(entries["path"].tolist())  # (n, d)
    options = options_of(entries, "test_seen", variants)
    choices_for = compare_texts(options, embed_texts, embeddings, mean)
    first = {multiple: choices_for(np.full(len(entries), multiple)).first for multiple in MULTIPLES}
    # Sums, from which the means without a pair follow.
    by_pair = pd.DataFrame(first).assign(n=1).groupby(entries["pair"]).sum()
    adjectives = np.array([split_pair(str(pair))[0] for pair in by_pair.index])
    accuracy = by_pair.to_numpy()
    # A multiple that is chosen on a pair would favor it over held-out ones.
    without_pair = {}
    for row, pair in enumerate(by_pair.index):
        of_other_pairs = np.delete(accuracy, row, axis=0)
        without_pair[str(pair)] = best_multiple(of_other_pairs, np.delete(adjectives, row))
    return Adjustment(mean, best_multiple(accuracy, adjectives), without_pair)
