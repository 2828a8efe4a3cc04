"""Estimate the width of a score's interval on each test split, before anything is trained.

The sampling units are the held-out pairs. With n prompts of m images, including n_k of pair k, a
mean has the variance

    s² = σ² / K + (1 + (n/m − 1) ρ) / (4 n),    K = n² / Σ n_k²

K is the effective number of pairs (Kish 1965): the number of equally frequent pairs with the same
variance. The second part is the largest variance of a fraction, 1/4, with the design effect of
images that have several prompts. The interval is the mean ± t s, with Satterthwaite's degrees of
freedom (K − 1 for the pairs). test_seen has no held-out pairs, so only the second part.
docs/widths.md compares this with measured intervals.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from scipy.special import stdtrit

from compclip.core.tables import TESTS
from compclip.stats.interval import LEVEL

# σ: between pairs, of a composing minus a memorizing generator, measured on drawn birds.
PAIR_SD = 0.24
# ρ: between the scores of one image's prompts, measured likewise.
IMAGE_CORRELATION = 0.25
# The half width above which a split measures little: 10 equally frequent pairs allow ± 17 points.
WIDE = 0.175

# How to narrow the intervals, by the source of the held-out pairs.
WIDTH_REMEDIES = {
    "drawn": "set fraction, window and prefer_swappable of split.heldout to null, so that they are "
    "chosen, or add captions",
    "config": "list more pairs, and more frequent ones, in split.heldout.pairs, or add captions",
    "divergence": "raise split.divergence.test or add captions",
    "published": "the published split has no more pairs and images",
}


def effective_pairs(counts: pd.Series) -> float:
    """Return the effective number of pairs (Kish 1965) for ``counts``, the prompts of each pair."""
    return float(counts.sum() ** 2 / (counts**2).sum())


def half_width(prompts: int, images: int, pairs: float | None = None) -> float | None:
    """Return half the expected width of the 95 % interval; None if there is only one pair or one
    image.

    ``pairs`` is the effective number of held-out pairs; None if the split has none.
    """
    if images < 2:
        return None
    if pairs is not None and pairs <= 1:
        return None
    # The largest variance of a fraction, 1 / 4, times the design effect.
    image_variance = (1 + (prompts / images - 1) * IMAGE_CORRELATION) / (4 * prompts)
    freedom = math.inf
    variance = image_variance
    if pairs:
        pair_variance = PAIR_SD**2 / pairs
        variance = pair_variance + image_variance
        # Satterthwaite: only the variance between pairs is estimated.
        freedom = (pairs - 1) * (variance / pair_variance) ** 2
    # Of Student's t; with infinite degrees of freedom, of the normal distribution.
    quantile = float(stdtrit(freedom, (1 + LEVEL) / 2))
    return round(min(1.0, quantile * math.sqrt(variance)), 6)


def estimate_split(prompts: pd.DataFrame) -> dict[str, Any]:
    """Return the sizes of a test split and its expected half width. ``prompts``: its rows of
    ``tables.PROMPTS``.
    """
    # test_seen may have prompts without a pair.
    counts = prompts["pair"].dropna().value_counts()
    images = prompts["image_id"].nunique()
    result: dict[str, Any] = {"prompts": len(prompts), "images": images}
    if counts.empty:
        return result | {"half_width": half_width(len(prompts), images)}
    # Pairs of very different frequency count less than their number.
    effective = effective_pairs(counts)
    most_frequent = counts.index[counts == counts.max()]
    return result | {
        "pairs": len(counts),
        "effective_pairs": round(effective, 2),
        "largest": str(min(most_frequent)),
        "largest_fraction": round(float(counts.max() / counts.sum()), 6),
        "half_width": half_width(len(prompts), images, effective),
    }


def more_captions(chosen: Mapping[str, Any]) -> str:
    """Return how many captions would reach the wanted width. ``chosen``: of heldout.json."""
    number = "many more"
    if chosen["captions_needed"]:
        number = f"roughly {chosen['captions_needed']:,}"
    return f"± {chosen['width']:g} points need {number} captions of this kind"


def estimate_widths(prompts: pd.DataFrame, heldout: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimates of all test splits and, if an interval is wide, a warning with a remedy.

    ``heldout``: content of heldout.json.
    """
    splits = {split: estimate_split(prompts[prompts["split"] == split]) for split in TESTS}
    wide = []
    for split, row in splits.items():
        if (row["half_width"] or math.inf) > WIDE:
            wide.append(named_width(split, row))
    warnings = []
    if wide:
        chosen = heldout.get("chosen", {})
        remedy = WIDTH_REMEDIES[heldout["source"]]
        if "captions_needed" in chosen:
            remedy = more_captions(chosen)
        warnings.append(f"wide intervals: {', '.join(wide)}; {remedy}")
    return {
        "level": LEVEL,
        "pair_sd": PAIR_SD,
        "image_correlation": IMAGE_CORRELATION,
        "splits": splits,
        "warnings": warnings,
    }


def named_width(split: str, row: Mapping[str, Any]) -> str:
    """Return a split's half width and the numbers that decide it, as text. ``row``: of
    ``estimate_split``.
    """
    sizes = f"prompts: {row['prompts']:,}, images: {row['images']:,}"
    width = points(row["half_width"])
    return f"{split} {width} (pairs: {row.get('pairs', 0)}, {sizes})"


def points(half: float | None) -> str:
    """Return a half width as text: ``± 8.9 points``."""
    return "interval unknown" if half is None else f"± {100 * half:.1f} points"
