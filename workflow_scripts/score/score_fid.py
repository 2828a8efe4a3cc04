"""Measure the Fréchet inception distance of a generator's images from the real images of each split."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from workflow_scripts.clip.device import find_device, settle
from workflow_scripts.clip.pixels import PREPROCESS, Preprocess
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.digests import sha256
from workflow_scripts.core.errors import UserError, require
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import IMAGES, MANIFEST, PROMPTS, SPLIT
from workflow_scripts.dataset.download import fetch
from workflow_scripts.score.steps import ScoreFid
from workflow_scripts.stats import balance

# Images are stretched to the size that the paper's models draw, as in the released code.
PIXELS = Preprocess({**PREPROCESS, "size": 256, "resize_mode": "squash", "interpolation": "bilinear"}, None)
MOST = 10_000  # generated images of a split that are compared, as published
BATCH, FEATURES = 32, 2048


def load_inception(weights: str, cache: Path) -> torch.nn.Module:
    """Load the network of the original FID; UserError if the file (URL or path) does not hold its weights."""
    import_torchvision()
    from torchmetrics.image.fid import NoTrainInceptionV3  # slow to import; tests use a network of their own

    path = fetch(weights, cache)
    # By torch's convention the name ends with the first digits of the file's sha256.
    beginning = "".join(re.findall(r"-([0-9a-f]{8,64})\.\w+$", path.name))
    require(sha256(path).startswith(beginning), path, f"its sha256 does not start with {beginning}", "delete the file")
    try:  # antialias=False: resized as by TensorFlow, whose network this is
        return NoTrainInceptionV3("inception-v3-compat", [str(FEATURES)], str(path), antialias=False)
    except Exception as error:  # of many kinds; no code from the file runs
        raise UserError(f"{path}: not the Inception network's weights ({cli.one_line(error)[:150]})") from error


def frechet_distance(network: Any, real: Sequence[Path], generated: Sequence[Path], device: Any) -> float | None:
    """Return the distance of two sets of images (Heusel et al. 2017, equation 6); None for fewer than two."""
    import_torchvision()
    from torchmetrics.image.fid import FrechetInceptionDistance

    if min(len(real), len(generated)) < 2:
        return None
    metric = FrechetInceptionDistance(feature=network).to(device)
    for paths, is_real in ((real, True), (generated, False)):
        for start in range(0, len(paths), BATCH):
            pixels = PIXELS.read([(path, None) for path in paths[start : start + BATCH]])
            metric.update(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(device), real=is_real)
    value = float(metric.compute())
    require(math.isfinite(value), real[0].parent, "features of an image are NaN or infinite", "check the weights")
    return max(0.0, round(value, DECIMALS))  # of equal sets, rounding may leave a value below 0


def score_split(step: ScoreFid, network: Any, device: Any, split: str, real: list[Path], made: Any) -> dict[str, Any]:
    """Return the distance of one split's images, rows of ``made``, from the real ones; if swapped, balanced too."""

    def distance(entries: pd.DataFrame, name: str) -> float | None:
        if len(entries) > MOST:
            entries = entries.iloc[np.sort(rng(step.seed, "score_fid", name).choice(len(entries), MOST, replace=False))]
        return frechet_distance(network, real, [step.results / path for path in entries["path"]], device)

    generated = min(len(made), MOST)
    about = f"{generated:,} generated and {len(real):,} real images"
    if min(generated, len(real)) <= FEATURES:
        about += f", too few for {FEATURES:,} features: biased upwards"
        log.warning("%s, %s: %s; compare the FID only with one of equally many images", step.generator, split, about)
    result = {"fid": distance(made, split), "generated": generated, "real": len(real), "about": about}
    if split == "test_swapped" and len(made):
        pairs = made["pair"].tolist()
        cut = balance.cut_dominant(pairs, step.balance.dominant_of(step.composition), step.balance.ratio)
        result["balanced"] = distance(made[balance.subsample(pairs, cut, step.seed)], "balanced")
    return result


def main(step: ScoreFid, network: torch.nn.Module | None = None) -> None:
    prompt = ["split", "image_id", "caption_id", "draw"]
    images = read_table(step.images, IMAGES).dropna(subset="path").sort_values("image_id")
    splits, manifest = read_table(step.splits, SPLIT), read_table(step.manifest, MANIFEST)
    made = manifest[manifest["status"] == "ok"].merge(read_table(step.prompts, PROMPTS, [*prompt, "pair"]), on=prompt)
    made, device = made.sort_values(prompt), find_device(step.device)
    settle(step.threads)
    network = (network or load_inception(step.settings.weights, step.cache)).to(device).eval()
    results = {}
    for split in step.serves:
        origin = "test_seen" if split == "test_swapped" else split
        of_split = images["image_id"].isin(splits.loc[splits["split"] == origin, "image_id"])
        real = [step.results / path for path in images.loc[of_split, "path"]]
        require(real, step.images, f"no image of {origin} has a file", "there is nothing to compare with")
        results[split] = score_split(step, network, device, split, real, made[made["split"] == split])
        log.info("%s, %s: FID %s", step.generator, split, results[split]["fid"])
    write_json({"generator": step.generator, "network": "Inception, 2048 features", "splits": results}, step.fid)


if __name__ == "__main__":
    cli.run(main)
