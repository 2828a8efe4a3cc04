"""Measure the Fréchet inception distance of a generator's images from the real images of each split."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compclip.clip.device import find_device, settle
from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.clip.vision import import_torchvision
from compclip.core import cli
from compclip.core.digests import sha256
from compclip.core.errors import UserError, require
from compclip.core.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.core.tables import IMAGES, MANIFEST, PROMPTS, SPLIT
from compclip.dataset.download import fetch
from compclip.io import read_table, write_json
from compclip.score.steps import ScoreFid
from compclip.stats import balance

import_torchvision()
from torchmetrics.image import fid  # noqa: E402

# Images are stretched to the size that the paper's models draw, as in the released code.
PIXELS = Preprocess({**PREPROCESS, "size": 256, "resize_mode": "squash", "interpolation": "bilinear"}, None)
MOST = 10_000  # generated images of a split that are compared, as published
BATCH, FEATURES, KEYS = 32, 2048, ["split", "image_id", "caption_id", "draw"]


def load_inception(weights: str, cache: Path) -> torch.nn.Module:
    """Load the network of the original FID; UserError if the file (URL or path) does not hold its weights."""
    path = fetch(weights, cache)
    # By torch's convention the name ends with the first digits of the file's sha256.
    beginning = "".join(re.findall(r"-([0-9a-f]{8,64})\.\w+$", path.name))
    require(sha256(path).startswith(beginning), path, f"its sha256 does not start with {beginning}", "delete the file")
    try:  # antialias=False: resized as by TensorFlow, whose network this is
        return fid.NoTrainInceptionV3("inception-v3-compat", [str(FEATURES)], str(path), antialias=False)
    except Exception as error:  # of many kinds; no code from the file runs
        raise UserError(f"{path}: not the Inception network's weights ({cli.one_line(error)[:150]})") from error


def main(step: ScoreFid, network: Any = None) -> None:
    images = read_table(step.images, IMAGES).dropna(subset="path").merge(read_table(step.splits, SPLIT), on="image_id")
    made = read_table(step.manifest, MANIFEST).query("status == 'ok'").sort_values(KEYS)
    made, device = made.merge(read_table(step.prompts, PROMPTS, [*KEYS, "pair"]), on=KEYS), find_device(step.device)
    settle(step.threads)
    network = network or load_inception(step.settings.weights, step.cache)
    metric = fid.FrechetInceptionDistance(feature=network.eval()).to(device)

    def distance(name: str, real: np.ndarray, paths: np.ndarray) -> float | None:
        """Return the distance of two sets of images (Heusel et al. 2017, equation 6); None for fewer than two."""
        if len(paths) > MOST:
            paths = paths[np.sort(rng(step.seed, "score_fid", name).choice(len(paths), MOST, replace=False))]
        if min(len(real), len(paths)) < 2:
            return None
        metric.reset()
        for files, is_real in ((real, True), (paths, False)):
            for start in range(0, len(files), BATCH):
                pixels = PIXELS.read([(step.results / file, None) for file in files[start : start + BATCH]])
                metric.update(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(device), real=is_real)
        value = float(metric.compute())
        require(np.isfinite(value), step.manifest, "features of an image are NaN or infinite", "check the weights")
        return max(0.0, round(value, DECIMALS))  # of equal sets, rounding may leave a value below 0

    results: dict[str, dict[str, Any]] = {}
    for split in step.serves:
        origin, of_split = "test_seen" if split == "test_swapped" else split, made[made["split"] == split]
        real = images.loc[images["split"] == origin].sort_values("image_id")["path"].to_numpy()
        require(len(real), step.images, f"no image of {origin} has a file", "there is nothing to compare with")
        generated, paths, pairs = min(len(of_split), MOST), of_split["path"].to_numpy(), of_split["pair"].tolist()
        about = f"{generated:,} generated and {len(real):,} real images"
        if min(generated, len(real)) <= FEATURES:
            about += f", too few for {FEATURES:,} features: biased upwards"
        numbers = {"generated": generated, "real": len(real), "about": about}
        results[split] = {"fid": distance(split, real, paths), **numbers}
        if split == "test_swapped" and pairs:
            cut = balance.cut_dominant(pairs, step.balance.dominant_of(step.composition), step.balance.ratio)
            results[split]["balanced"] = distance("balanced", real, paths[balance.subsample(pairs, cut, step.seed)])
        cli.log.info("%s, %s: FID %s, %s", step.generator, split, results[split]["fid"], about)
    write_json({"generator": step.generator, "network": "Inception, 2048 features", "splits": results}, step.fid)


if __name__ == "__main__":
    cli.run(main)
