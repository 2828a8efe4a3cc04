"""Divide the images by divergence (DBCA), from which held-out pairs and splits follow (``split.steps``)."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from compclip.core import cli
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.seeds import derive_seed
from compclip.core.tables import CAPTIONS, DIVISION, PAIRS, RANKING, SIDES
from compclip.divergence.divide import RESTARTS, ROUNDING, divide, path
from compclip.divergence.pair_samples import pair_samples
from compclip.io import read_table, write_json, write_table
from compclip.split.config import Divergence
from compclip.split.steps import DivideImages


def side_sizes(images: int, train: float, test: float) -> tuple[int, int]:
    """Return the numbers of images in train and in test for two fractions of ``images``; half rounds up."""
    n_train = int(train * images + 0.5)
    n_test = min(int(test * images + 0.5), images - n_train)
    if min(n_train, n_test) < 1:
        raise UserError(
            f"split.divergence: {images} images are too few for the fractions {train:g} and {test:g}; add captions or"
            " raise split.divergence.train and split.divergence.test"
        )
    return n_train, n_test


def divide_images(
    image_ids: Collection[str],
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    target: Divergence,
    seed: int,
    dataset: str,
    composition: str,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the division, sorted by image_id, and a summary of target and result.

    ``pairs`` has image_id, adjective and noun of all occurrences.
    """
    images = sorted(set(image_ids))
    n_train, n_test = side_sizes(len(images), target.train, target.test)
    samples = pair_samples(pairs, ranking, images)
    step_seed = derive_seed(seed, "divide_images", dataset, composition)
    best = divide(samples, n_train, n_test, target.atom, target.compound, step_seed)
    side = np.full(len(images), "unused", dtype=object)
    side[best.train], side[best.test] = "train", "test"
    division = pd.DataFrame({"image_id": images, "side": side}).astype("str")
    # The path of the greedy algorithm, without the exchanges after it.
    greedy_path = path(best.greedy)
    exceeded = target.compound == "max" and best.atom > target.atom + ROUNDING
    warning = f"the atom divergence stays at {best.atom:.3g}, over the wanted {target.atom:g}: ask for smaller sides"
    return division, {
        "wanted": target.model_dump(include={"atom", "compound", "train", "test"}),
        "restarts": RESTARTS,
        "seed": seed,
        "atom_divergence": round(best.atom, 6),
        "compound_divergence": round(best.compound, 6),
        "images": len(images),
        "images_without_pair": int((samples.compounds.sum(axis=1) == 0).sum()),
        "sizes": {name: int((side == name).sum()) for name in SIDES},
        "warnings": [warning] if exceeded else [],
        "path": {"images": greedy_path.pop("samples"), **greedy_path},
    }


def main(step: DivideImages) -> None:
    division, summary = divide_images(
        read_table(step.captions, CAPTIONS, columns=["image_id", "caption_id"])["image_id"].unique(),
        read_table(step.pairs, PAIRS, columns=["image_id", "adjective", "noun"]),
        read_table(step.ranking, RANKING),
        step.divergence,
        step.seed,
        step.dataset,
        step.composition,
    )
    write_table(division, step.division, DIVISION)
    write_json(summary, step.summary)
    for warning in summary["warnings"]:
        log.warning("warning: %s: %s", step.where, warning)
    sizes = ", ".join(f"{name} {size}" for name, size in summary["sizes"].items())
    divergences = summary["atom_divergence"], summary["compound_divergence"]
    log.info("%s: %s images; atom divergence %.3f, compound divergence %.3f", step.where, sizes, *divergences)


if __name__ == "__main__":
    cli.run(main)
