"""How wide the interval of a score will be on each test split, estimated before anything is trained.

The held-out pairs are the sampled unit. With n prompts of m images, n_k of them of pair k, a mean has the variance

    s² = σ² / K + (1 + (n/m − 1) ρ) / (4 n),    K = n² / Σ n_k²

K is the effective number of pairs (Kish 1965): the number of equally frequent pairs with the same variance. The second
part is the largest variance of a fraction, 1/4, with the design effect of images that have several prompts. The
interval is the mean ± t s, with Satterthwaite's degrees of freedom (K − 1 for the pairs). test_seen tests no
held-out pair and has the second part alone. docs/widths.md compares this with measured intervals.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from scipy.special import stdtrit

from compclip.core.heldout import FEW_PAIRS
from compclip.core.tables import TESTS
from compclip.stats.interval import LEVEL

# σ: between pairs, of a generator that composes minus one that repeats, measured on drawn birds.
PAIR_SD = 0.24
# ρ: between the scores of one image's prompts, measured likewise.
IMAGE_CORRELATION = 0.25
# Below these a split measures little: 10 pairs allow about ± 17 points, 100 images about ± 10.
FEW_IMAGES, FEW_PROMPTS = 100, 100
# A pair with more than this part of the prompts dominates, unless all are as frequent: K is below so much of the pairs.
DOMINANT, UNEVEN = 0.25, 0.75

# What gives more pairs, more images of each, and more even pairs, by the source of the held-out pairs.
ADVICE: Mapping[str, tuple[str, str, str]] = {
    "drawn": (
        "raise split.heldout.fraction, widen split.heldout.window, lower pairs.selection.min_count or rank more nouns",
        "move split.heldout.window down, to more frequent pairs, raise pairs.selection.min_count or add captions",
        "narrow split.heldout.window or list pairs in split.heldout.pairs",
    ),
    "config": (
        "list more pairs in split.heldout.pairs",
        "list more frequent pairs in split.heldout.pairs or add captions",
        "list other pairs in split.heldout.pairs",
    ),
    "divergence": (
        "raise split.divergence.test, or rank more pairs: lower pairs.selection.min_count or rank more nouns",
        "raise split.divergence.test or add captions",
        "set method pairs",
    ),
    "published": ("the published split has no more",) * 3,
}
SWAPPABLE = "set split.heldout.prefer to swappable"


def effective_pairs(counts: pd.Series) -> float:
    """Return the number of equally frequent pairs that is worth ``counts``, the prompts of each pair."""
    return float(counts.sum() ** 2 / (counts**2).sum())


def half_width(prompts: int, images: int, pairs: float | None = None) -> float | None:
    """Return half the expected width of the 95 % interval; None if one pair or one image allows none.

    ``pairs`` is the effective number of held-out pairs; None if the split tests none.
    """
    if images < 2 or pairs is not None and pairs <= 1:
        return None
    of_images = (1 + (prompts / images - 1) * IMAGE_CORRELATION) / (4 * prompts)
    of_pairs = PAIR_SD**2 / pairs if pairs else 0.0
    variance = of_pairs + of_images
    freedom = (pairs - 1) * (variance / of_pairs) ** 2 if pairs else math.inf
    return round(min(1.0, float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)), 6)


def estimate_split(prompts: pd.DataFrame) -> dict[str, Any]:
    """Return what a test split has and what it allows. prompts: its rows of ``tables.PROMPTS``."""
    counts = prompts["pair"].dropna().value_counts()
    images = prompts["image_id"].nunique()
    result: dict[str, Any] = {"prompts": len(prompts), "images": images}
    if counts.empty:
        return result | {"half_width": half_width(len(prompts), images)}
    effective = effective_pairs(counts)
    return result | {
        "pairs": len(counts),
        "effective_pairs": round(effective, 2),
        "largest": str(min(counts.index[counts == counts.max()])),
        "largest_fraction": round(float(counts.max() / counts.sum()), 6),
        "half_width": half_width(len(prompts), images, effective),
    }


def width_faults(split: str, estimated: Mapping[str, Any], heldout: Mapping[str, Any]) -> list[str]:
    """Return what hinders a split from measuring anything (``estimate_split``), each with the settings that help."""
    more_pairs, more_images, more_even = ADVICE[heldout["source"]]
    if split == "test_seen":
        more_images = "raise split.test_seen or add captions"
    faults = []
    if estimated["prompts"] < FEW_PROMPTS:
        faults.append(f"few prompts ({estimated['prompts']}): {more_images}")
    elif estimated["images"] < FEW_IMAGES:
        faults.append(f"few images ({estimated['images']}): {more_images}")
    if "pairs" not in estimated:
        return faults
    pairs, effective, chosen = estimated["pairs"], estimated["effective_pairs"], len(heldout["pairs"])
    uneven = effective < UNEVEN * pairs
    if effective < FEW_PAIRS:
        numbers = f"{pairs} of {chosen} held out" if pairs < chosen else f"{pairs}"
        numbers += f", worth {effective:.1f} equally frequent ones" if pairs - effective > 1 else ""
        is_drawn = heldout["source"] == "drawn" and heldout["prefer"] == "any"
        if split == "test_swapped" and is_drawn and (pairs < chosen or uneven):
            more_pairs = f"{SWAPPABLE}, {more_pairs}"
        faults.append(f"few pairs ({numbers}, fewer than {FEW_PAIRS}), {points(estimated['half_width'])}: {more_pairs}")
    if estimated["largest_fraction"] > DOMINANT and uneven:
        faults.append(f"{estimated['largest']} has {estimated['largest_fraction']:.0%} of the prompts: {more_even}")
    return faults


def estimate_widths(prompts: pd.DataFrame, heldout: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimates of all test splits, and warnings. heldout: content of heldout.json."""
    splits = {split: estimate_split(prompts[prompts["split"] == split]) for split in TESTS}
    return {
        "level": LEVEL,
        "pair_sd": PAIR_SD,
        "image_correlation": IMAGE_CORRELATION,
        "splits": splits,
        "warnings": [
            f"{split}: {fault}" for split, row in splits.items() for fault in width_faults(split, row, heldout)
        ],
    }


def points(half: float | None) -> str:
    """Return half a width as ``± 8.9 points``."""
    return "interval unknown" if half is None else f"± {100 * half:.1f} points"
