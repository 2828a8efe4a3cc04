"""Divide the images so that train and test diverge in their pairs, and hardly in their adjectives and nouns.

Keysers et al. 2020 (DBCA), with images for samples: an image goes with all its captions. Which pairs are held out
follows from the division (sample_heldout), and so do the splits (make_splits).
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_json, write_table
from workflow_scripts.core.seeds import derive_seed
from workflow_scripts.core.tables import CAPTIONS, DIVISION, PAIRS, RANKING, SIDES
from workflow_scripts.divergence.measure import DIGITS
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.divergence.split import RESTARTS, ROUNDING, divide, path


def side_sizes(images: int, train: float, test: float) -> tuple[int, int]:
    """Images of train and of test for shares of ``images``; half rounds up, and together they are no more than all.

    Raises UserError where a side would be empty, or the shares are more than all.
    """
    if train + test > 1 + 1e-9:
        raise UserError(f"the shares of train and test, {train:g} and {test:g}, are more than all images: lower one")
    n_train = int(train * images + 0.5)
    n_test = min(int(test * images + 0.5), images - n_train)
    if min(n_train, n_test) < 1:
        raise UserError(
            f"{images} images are too few for shares of {train:g} and {test:g}: add captions, or raise "
            "split.divergence.train and test"
        )
    return n_train, n_test


def divide_images(
    image_ids: Collection[str],
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    *,
    atom: float,
    compound: float | str,
    train: float,
    test: float,
    restarts: int,
    seed: int,
    dataset: str,
    composition: str,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """``(division, summary)``: columns of ``tables.DIVISION``, sorted by image_id, and what was wanted and reached.

    pairs: image_id, adjective, noun of all occurrences. ranking: columns of ``tables.RANKING``. ``atom``, ``compound``:
    the wanted divergences; ``max`` is the largest compound divergence that leaves the atom divergence at most ``atom``.
    ``train``, ``test``: shares of the images. Raises UserError where a side would be empty.
    """
    images = sorted(set(image_ids))
    n_train, n_test = side_sizes(len(images), train, test)
    samples = pair_samples(pairs, ranking, images)
    own_seed = derive_seed(seed, "divide_images", dataset, composition)
    found = divide(samples, n_train, n_test, atom, compound, own_seed, restarts)
    kept = found.kept
    side = np.full(len(images), "unused", dtype=object)
    side[kept.train], side[kept.test] = "train", "test"
    division = pd.DataFrame({"image_id": images, "side": side}).astype("str")
    # The way of the greedy algorithm; the exchanges after it are not in it.
    way = path(kept.greedy)
    over = f"the atom divergence stays at {kept.atom:.3g}, over the wanted {atom:g}: ask for smaller sides"
    return division, {
        "wanted": {"atom": atom, "compound": compound, "train": train, "test": test},
        "restarts": restarts,
        "seed": seed,
        "atom_divergence": round(kept.atom, DIGITS),
        "compound_divergence": round(kept.compound, DIGITS),
        "images": len(images),
        "images_without_pair": int((samples.compounds.sum(axis=1) == 0).sum()),
        "sizes": {name: int((side == name).sum()) for name in SIDES},
        "warnings": [over] if compound == "max" and kept.atom > atom + ROUNDING else [],
        "path": {"images": way.pop("samples"), **way},
    }


def main(options: argparse.Namespace) -> None:
    captions = read_table(options.captions, CAPTIONS, columns=["image_id", "caption_id"])
    division, summary = divide_images(
        captions["image_id"].unique(),
        read_table(options.pairs, PAIRS, columns=["image_id", "adjective", "noun"]),
        read_table(options.ranking, RANKING),
        atom=options.atom,
        compound=options.compound,
        train=options.train,
        test=options.test,
        restarts=options.restarts,
        seed=options.seed,
        dataset=options.dataset,
        composition=options.composition,
    )
    write_table(division, options.output, DIVISION)
    write_json(summary, options.summary)
    where = f"{options.dataset}/{options.composition}"
    sizes = ", ".join(f"{name} {size}" for name, size in summary["sizes"].items())
    reached = summary["atom_divergence"], summary["compound_divergence"]
    for warning in summary["warnings"]:
        log.warning("warning: %s: %s", where, warning)
    log.info("%s: %s images; atom divergence %.3f, compound divergence %.3f", where, sizes, *reached)


def number_or_max(text: str) -> str | float:
    return text if text == "max" else float(text)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--captions", type=Path, required=True)
    result.add_argument("--pairs", type=Path, required=True)
    result.add_argument("--ranking", type=Path, required=True)
    result.add_argument("--atom", type=float, default=0.02, help="atom divergence (default: %(default)s)")
    result.add_argument(
        "--compound", type=number_or_max, default="max", help="compound divergence, or max (the default)"
    )
    result.add_argument("--train", type=float, required=True, help="share of the images")
    result.add_argument("--test", type=float, required=True, help="share of the images")
    result.add_argument(
        "--restarts", type=int, default=RESTARTS, help="divisions to choose from (default: %(default)s)"
    )
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="division.parquet")
    result.add_argument("--summary", type=Path, required=True, help="division.json: what was wanted and reached")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
