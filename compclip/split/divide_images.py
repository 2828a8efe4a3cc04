"""Divide the images so that train and test diverge in pairs, but little in adjectives and nouns.

Follows DBCA (Keysers et al. 2020), with images and all their captions as samples. Held-out pairs
and splits follow from the division.
"""

from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.seeds import derive_seed
from compclip.core.settings.arguments import (
    Ids,
    Occurrences,
    RankedPairs,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import SIDES
from compclip.divergence.divide import ROUNDING, divide_samples
from compclip.divergence.pair_samples import pair_samples
from compclip.split.config import Divergence


def side_sizes(images: int, train: float, test: float) -> tuple[int, int]:
    """Return the numbers of images in train and in test for two fractions of ``images``; half
    rounds up.
    """
    n_train = int(train * images + 0.5)
    # Rounding both up must not take more images than there are.
    n_test = min(int(test * images + 0.5), images - n_train)
    fault = f"{images} images are too few for the fractions {train:g} and {test:g}"
    remedy = "add captions or raise split.divergence.train and split.divergence.test"
    require(min(n_train, n_test) >= 1, "split.divergence", fault, remedy)
    return n_train, n_test


@checked
def divide_images(
    image_ids: Ids,
    pairs: Occurrences,
    ranking: RankedPairs,
    target: Divergence | None = None,
    *,
    seed: Whole = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Divide images by divergence.

    Args:
        image_ids: all images.
        pairs, ranking: as in ``tables``: all occurrences, and the pairs that count.
        target: divergences and sizes of the sides; None: defaults.
        dataset, composition: names for the random stream and for messages.

    Returns:
        The division (``tables.DIVISION``), sorted by image_id, and a summary of target and result.

    Raises:
        UserError: a pair's image is not among image_ids, or an argument is refused
            (docs/library.md).
    """
    require_joined(image_ids, "image_ids", pairs=pairs)
    target = target or Divergence()
    # Sorted, so that the order of rows decides nothing.
    images = sorted(set(image_ids["image_id"]))
    n_train, n_test = side_sizes(len(images), target.train, target.test)
    samples = pair_samples(pairs, ranking, images)
    step_seed = derive_seed(seed, "divide_images", dataset, composition)
    best = divide_samples(samples, n_train, n_test, target.atom, target.compound, step_seed)
    side_of_image = np.full(len(images), "unused", dtype=object)
    side_of_image[best.train] = "train"
    side_of_image[best.test] = "test"
    division = pd.DataFrame({"image_id": images, "side": side_of_image}).astype("str")
    warnings = []
    # With a target compound divergence, both divergences are only approached.
    if target.compound == "max" and best.atom > target.atom + ROUNDING:
        warnings.append(
            f"the atom divergence stays at {best.atom:.3g}, over the wanted {target.atom:g}: ask "
            "for smaller sides"
        )
    sizes = {name: int((side_of_image == name).sum()) for name in SIDES}
    summary = {
        "wanted": target.model_dump(include={"atom", "compound", "train", "test"}),
        "seed": seed,
        "atom_divergence": round(best.atom, DECIMALS),
        "compound_divergence": round(best.compound, DECIMALS),
        "images": len(images),
        "sizes": sizes,
        "warnings": warnings,
    }
    where = f"{dataset}/{composition}"
    for warning in warnings:
        log.warning("warning: %s: %s", where, warning)
    log.info(
        "%s: %s images; atom divergence %.3f, compound divergence %.3f",
        where,
        ", ".join(f"{name} {size}" for name, size in sizes.items()),
        best.atom,
        best.compound,
    )
    return division, summary
