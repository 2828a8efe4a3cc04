"""Measure the Fréchet inception distance of a generator's images from the real images of each split."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import torch
from PIL import Image

from workflow_scripts.clip.device import find_device, settle
from workflow_scripts.clip.embed import Embedder, Item
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.digests import sha256
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.pictures import BrokenImage, read_rgb
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import IMAGES, MANIFEST, PROMPTS, SPLIT
from workflow_scripts.dataset.download import fetch
from workflow_scripts.score.steps import ScoreFid
from workflow_scripts.stats import balance

# Size of the images that the paper's models draw; the released code resizes the real images to it.
PIXELS = 256
# Images encoded at once; the last batch is filled up to the same shape.
BATCH = 32


class Extractor:
    """Computes features of image files by a network from (n, 3, 256, 256) uint8 to (n, d) floats."""

    tokenizer = None
    width = 2048

    def __init__(self, network: torch.nn.Module, name: str, hash: str, device: torch.device) -> None:
        self.network, self.name, self.hash, self.device = network.to(device).eval(), name, hash, device

    @torch.inference_mode()
    def encode_images(self, items: Sequence[Item], batch: int) -> np.ndarray:
        """Return (n, d) float32; boxes are ignored."""
        parts = []
        with Progress(len(items), "images") as progress:
            for start in range(0, len(items), batch):
                pixels = np.stack([read_pixels(path) for path, _ in items[start : start + batch]])
                filled = np.concatenate([pixels, np.repeat(pixels[:1], batch - len(pixels), axis=0)])
                features = self.network(torch.from_numpy(filled).to(self.device))
                parts.append(features[: len(pixels)].float().cpu().numpy())
                progress.add(len(pixels))
        return np.concatenate(parts)

    def encode_texts(self, texts: Sequence[str], batch: int) -> np.ndarray:
        raise TypeError(f"{self.name} does not encode texts")


def read_pixels(path: Path) -> np.ndarray:
    """Return (3, 256, 256) uint8; an image of another size is stretched, as in the released code."""
    try:
        image = read_rgb(path)
    except (BrokenImage, FileNotFoundError) as error:
        raise UserError(f"{path}: not a readable image ({error}); replace or remove it") from error
    if image.size != (PIXELS, PIXELS):
        image = image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)


def load_inception(weights: str, cache: Path, threads: int, device: str) -> Extractor:
    """Load the network of the original FID; UserError if its weights (URL or path) or the device do not fit."""
    place = find_device(device)
    settle(threads)
    import_torchvision()
    # Imported here because it is slow and tests use a network of their own.
    from torchmetrics.image.fid import NoTrainInceptionV3

    path = fetch(weights, cache)
    digest = sha256(path)
    # torch's convention: the name ends with the first digits of the file's sha256.
    named = re.search(r"-([0-9a-f]{8,64})\.\w+$", urlsplit(weights).path)
    if named and not digest.startswith(named[1]):
        raise UserError(f"{path}: expected a sha256 that starts with {named[1]}, got {digest}; delete the file")
    try:
        # antialias=False: resized as by TensorFlow, whose network this is.
        network = NoTrainInceptionV3(
            name="inception-v3-compat",
            features_list=["2048"],
            feature_extractor_weights_path=str(path),
            antialias=False,
        )
    # torch raises many kinds of errors for a file with other content; it runs no code from the file.
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise UserError(f"{weights}: not the Inception network's weights ({type(error).__name__}: {reason})") from error
    return Extractor(network, "Inception, 2048 features", digest, place)


class _Identity(torch.nn.Module):
    """Stands for a network whose inputs are features already."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.num_features = features

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features


def frechet_distance(real: np.ndarray, generated: np.ndarray) -> float | None:
    """Return the Fréchet distance of features (n, d) and (m, d): ``|μ - ν|² + tr(Σ + Ψ - 2 (ΣΨ)^½)``.

    None for fewer than two rows. Source: Heusel et al. 2017, equation 6.
    """
    import_torchvision()
    from torchmetrics.image.fid import FrechetInceptionDistance

    if min(len(real), len(generated)) < 2:
        return None
    metric = FrechetInceptionDistance(feature=_Identity(real.shape[1]))
    metric.update(torch.from_numpy(real).double(), real=True)
    metric.update(torch.from_numpy(generated).double(), real=False)
    # For equal sets rounding leaves a value slightly above or below zero.
    return max(0.0, round(float(metric.compute()), DECIMALS)) + 0.0


def drawn_rows(number: int, most: int, seed: int, name: str) -> np.ndarray:
    """Return the rows to compare of ``number`` images, ascending: all, or ``most`` drawn by seed and ``name``."""
    if number <= most:
        return np.arange(number)
    return np.sort(rng(seed, "score_fid", name).choice(number, most, replace=False))


def score_split(
    step: ScoreFid, split: str, entries: pd.DataFrame, real: np.ndarray, embedder: Embedder
) -> dict[str, Any]:
    """Return the distances of one split's generated ``entries`` from its ``real`` images' features (n, d)."""

    def distance(rows: np.ndarray, name: str) -> dict[str, Any]:
        chosen = rows[drawn_rows(len(rows), step.settings.images, step.seed, name)]
        paths = entries["path"].iloc[chosen]
        generated = embedder.images([(step.results / path, None) for path in paths]) if len(chosen) else real[:0]
        return {"fid": frechet_distance(real, generated), "generated": len(chosen)}

    result = distance(np.arange(len(entries)), split)
    if split != "test_swapped" or entries.empty:
        return result
    pairs = entries["pair"].tolist()
    cut = balance.cut_dominant(pairs, step.balance.dominant_of(step.composition), step.balance.ratio)
    kept = np.flatnonzero(balance.subsample(pairs, cut, step.seed))
    return result | {"balanced": {**distance(kept, "balanced"), "rule": cut.rule}}


def main(step: ScoreFid, extractor: Extractor | None = None) -> None:
    prompt = ["split", "image_id", "caption_id", "draw"]
    images = read_table(step.images, IMAGES).set_index("image_id")["path"]
    splits, manifest = read_table(step.splits, SPLIT), read_table(step.manifest, MANIFEST)
    pairs = read_table(step.prompts, PROMPTS, [*prompt, "pair"])
    made = manifest[manifest["status"] == "ok"].merge(pairs, on=prompt, how="left")
    made = made.sort_values(prompt, ignore_index=True)
    extractor = extractor or load_inception(step.settings.weights, step.cache, step.threads, step.device)
    results: dict[str, Any] = {}
    with Cache(step.cache / "features" / f"{extractor.hash[:16]}.sqlite") as cache:
        module = "workflow_scripts.score.score_fid"
        code = code_hash(f"{module}:Extractor", f"{module}:load_inception")
        identity = f"{BATCH} {step.threads} {extractor.device.type} {torch.__version__} {code}"
        embedder = Embedder(extractor, cache, BATCH, identity, unit=False)
        for split in step.serves:
            where = f"{step.generator}: {split}"
            origin = "test_seen" if split == "test_swapped" else split
            ids = sorted(splits.loc[splits["split"] == origin, "image_id"])
            paths = images.reindex(ids).dropna()
            if paths.empty:
                raise UserError(f"{step.images}: no image of {origin} has a file; there is nothing to compare with")
            log.info("%s: %d real images", where, len(paths))
            real = embedder.images([(step.results / path, None) for path in paths])
            entries = made[made["split"] == split].reset_index(drop=True)
            result = score_split(step, split, entries, real, embedder)
            fewest, features = min(len(paths), result["generated"]), real.shape[1]
            results[split] = {
                **result,
                "generated_available": len(entries),
                "generated_without_image": int((manifest["split"] == split).sum()) - len(entries),
                "real": len(paths),
                "real_without_file": len(ids) - len(paths),
                "features": features,
                "singular": fewest <= features,
            }
            if result["fid"] is None:
                log.warning("%s: %d images; FID needs at least two", where, fewest)
            elif fewest <= features:
                log.warning(
                    "%s: FID of %d real and %d generated images, with %d features: singular and biased upwards; "
                    "compare it only with one of equally many images",
                    where, len(paths), result["generated"], features,
                )  # fmt: skip
            if result["fid"] is not None:
                log.info("%s: FID %.2f", where, result["fid"])
    summary = {
        "generator": step.generator,
        "network": extractor.name,
        "weights_sha256": extractor.hash,
        "library": f"torchmetrics {version('torchmetrics')}",
        "pixels": PIXELS,
        "splits": results,
    }
    write_json(summary, step.fid)


if __name__ == "__main__":
    cli.run(main)
