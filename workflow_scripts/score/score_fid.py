"""Fréchet inception distance of a generator's images from the real images of each split, as published.

The real images are those of the split (of test_seen for swapped captions), whole, as 256 by 256 pixels; the generated
ones 10,000, drawn by seed, or all. Features are the 2048 of the Inception network of the original FID, by torchmetrics;
its weights are downloaded. With fewer images than features a covariance is singular: the distance is then biased
upwards, and comparable with one of as many images alone. Entries of swapped captions are balanced besides, as in the
released code.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import torch
from PIL import Image, UnidentifiedImageError

from workflow_scripts.clip.device import find_device, settle
from workflow_scripts.clip.embed import Embedder, Item
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import IMAGES, MANIFEST, PROMPTS, SPLIT, TESTS
from workflow_scripts.dataset.download import fetch, sha256_of
from workflow_scripts.score.config import INCEPTION
from workflow_scripts.stats import balance

# What the models of the paper draw; the released code makes the real images as large.
PIXELS = 256
# Images at once: they, and the last few of them, have one fixed shape.
BATCH = 32
KEYS = ["split", "image_id", "caption_id", "draw"]
DIGITS = 6


class Extractor:
    """Features of image files. network: from (n, 3, 256, 256) bytes to (n, d) floats; hash: of its weights."""

    tokenizer = None

    def __init__(self, network: torch.nn.Module, name: str, hash: str, device: torch.device) -> None:
        self.network, self.name, self.hash, self.device = network.to(device).eval(), name, hash, device

    @torch.inference_mode()
    def encode_images(self, items: Sequence[Item], batch: int) -> np.ndarray:
        """(n, d) float32. Boxes are not looked at. UserError names a file that is no image."""
        parts = []
        with Progress(len(items), "images") as progress:
            for start in range(0, len(items), batch):
                pixels = np.stack([read_pixels(path) for path, _ in items[start : start + batch]])
                filled = np.concatenate([pixels, np.repeat(pixels[:1], batch - len(pixels), axis=0)])
                found = self.network(torch.from_numpy(filled).to(self.device))
                parts.append(found[: len(pixels)].float().cpu().numpy())
                progress.add(len(pixels))
        return np.concatenate(parts)

    def encode_texts(self, texts: Sequence[str], batch: int) -> np.ndarray:
        raise TypeError(f"{self.name} reads no texts")


def read_pixels(path: Path) -> np.ndarray:
    """(3, 256, 256) bytes; an image of another size is stretched, as the released code does."""
    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{path}: not a readable image ({error}): replace it or leave it out") from error
    if image.size != (PIXELS, PIXELS):
        image = image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)


def load_inception(weights: str, cache: Path, threads: int, device: str) -> Extractor:
    """The network of the original FID (TensorFlow's of 2015-12-05), with ``weights``, an address or a path.

    Raises UserError for weights that are not to be had or another network's, and for a GPU that is not there.
    """
    found = find_device(device)
    settle(threads)
    import_torchvision()
    # Here, not above: it is slow to import, and tests bring a network of their own.
    from torchmetrics.image.fid import NoTrainInceptionV3

    path = fetch(weights, cache)
    digest = sha256_of(path)
    # torch's custom: a name ends in the first digits of the file's sum.
    named = re.search(r"-([0-9a-f]{8,64})\.\w+$", urlsplit(weights).path)
    if named and not digest.startswith(named[1]):
        raise UserError(f"{path}: sha256 is {digest}, its name says {named[1]}: remove it and run again")
    try:
        # Resized as by TensorFlow, whose network this is.
        network = NoTrainInceptionV3(
            name="inception-v3-compat",
            features_list=["2048"],
            feature_extractor_weights_path=str(path),
            antialias=False,
        )
    # torch raises nearly anything where a file holds something else; it loads nothing that would run code.
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise UserError(f"{weights}: no weights of the Inception network ({type(error).__name__}: {reason})") from error
    return Extractor(network, "Inception, 2048 features", digest, found)


class _Given(torch.nn.Module):
    """In place of a network: what it gets are features already."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.num_features = features

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features


def frechet_distance(real: np.ndarray, generated: np.ndarray) -> float | None:
    """The Fréchet distance of two normal distributions with the means and covariances of features (n, d), (m, d).

    ``|μ - ν|² + tr(Σ + Ψ - 2 (ΣΨ)^½)`` (Heusel et al. 2017, equation 6); None for fewer than two images.
    """
    import_torchvision()
    from torchmetrics.image.fid import FrechetInceptionDistance

    if min(len(real), len(generated)) < 2:
        return None
    metric = FrechetInceptionDistance(feature=_Given(real.shape[1]))
    metric.update(torch.from_numpy(real).double(), real=True)
    metric.update(torch.from_numpy(generated).double(), real=False)
    # Of equal sets rounding leaves a little more or less than nothing.
    return max(0.0, round(float(metric.compute()), DIGITS)) + 0.0


def drawn_rows(number: int, most: int, seed: int, split: str) -> np.ndarray:
    """Which of ``number`` images are compared: ``most`` drawn by seed, in order, or all."""
    if number <= most:
        return np.arange(number)
    return np.sort(rng(seed, "score_fid", split).choice(number, most, replace=False))


def score_split(
    split: str, entries: pd.DataFrame, real: np.ndarray, embedder: Embedder, options: argparse.Namespace
) -> dict[str, Any]:
    """What is said of one split. entries: image_id, caption_id, draw, path, pair of its generated images, in order."""

    def distance(rows: np.ndarray, name: str) -> dict[str, Any]:
        chosen = rows[drawn_rows(len(rows), options.number, options.seed, name)]
        paths = entries["path"].iloc[chosen]
        generated = embedder.images([(options.results / path, None) for path in paths]) if len(chosen) else real[:0]
        return {"fid": frechet_distance(real, generated), "generated": len(chosen)}

    result = distance(np.arange(len(entries)), split)
    if split != "test_swapped" or entries.empty:
        return result
    pairs = entries["pair"].tolist()
    cut = balance.cut_dominant(pairs, options.dominant, options.ratio)
    kept = np.flatnonzero(balance.subsample(pairs, cut, options.seed))
    return result | {"balanced": {**distance(kept, "balanced"), "rule": cut.rule}}


def main(options: argparse.Namespace, extractor: Extractor | None = None) -> None:
    """``extractor``: in place of the Inception network."""
    images = read_table(options.images, IMAGES).set_index("image_id")["path"]
    splits = read_table(options.splits, SPLIT)
    manifest = read_table(options.manifest, MANIFEST)
    pairs = read_table(options.prompts, PROMPTS, [*KEYS, "pair"])
    made = manifest[manifest["status"] == "ok"].merge(pairs, on=KEYS, how="left").sort_values(KEYS, ignore_index=True)
    extractor = extractor or load_inception(options.weights, options.cache, options.threads, options.device)
    about: dict[str, Any] = {}
    with Cache(options.cache / "features" / f"{extractor.hash[:16]}.sqlite") as cache:
        how = f"{BATCH} {options.threads} {extractor.device.type} {torch.__version__} {PIXELS}"
        embedder = Embedder(extractor, cache, BATCH, how)
        for split in options.serves:
            origin = "test_seen" if split == "test_swapped" else split
            ids = sorted(splits.loc[splits["split"] == origin, "image_id"])
            paths = images.reindex(ids).dropna()
            if paths.empty:
                raise UserError(f"{options.images}: no image of {origin} has a file: there is nothing to compare with")
            log.info("%s: %s: %d real images", options.generator, split, len(paths))
            real = embedder.images([(options.results / path, None) for path in paths])
            entries = made[made["split"] == split].reset_index(drop=True)
            result = score_split(split, entries, real, embedder, options)
            few = min(len(paths), result["generated"])
            about[split] = {
                **result,
                "generated_available": len(entries),
                "generated_without_image": int((manifest["split"] == split).sum()) - len(entries),
                "real": len(paths),
                "real_without_file": len(ids) - len(paths),
                "features": real.shape[1],
                "singular": few <= real.shape[1],
            }
            if result["fid"] is None:
                log.warning("%s: %s: %d images: no FID of fewer than two", options.generator, split, few)
            elif few <= real.shape[1]:
                log.warning(
                    "%s: %s: FID of %d real and %d generated images, with %d features: singular and biased upwards; "
                    "compare it with one of as many images alone",
                    options.generator,
                    split,
                    len(paths),
                    result["generated"],
                    real.shape[1],
                )
    write_json(
        {
            "generator": options.generator,
            "network": extractor.name,
            "weights_sha256": extractor.hash,
            "library": f"torchmetrics {version('torchmetrics')}",
            "pixels": PIXELS,
            "splits": about,
        },
        options.output,
    )
    for split, result in about.items():
        if result["fid"] is not None:
            log.info("%s: %s: FID %.2f", options.generator, split, result["fid"])


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    for name in ("images", "splits", "prompts", "manifest"):
        result.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    result.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER")
    result.add_argument("--generator", required=True, metavar="NAME")
    result.add_argument(
        "--serves", nargs="+", choices=TESTS, default=list(TESTS), help="splits that it makes images for"
    )
    result.add_argument("--number", type=int, default=10_000, help="generated images of a split (%(default)s)")
    result.add_argument("--weights", default=INCEPTION, metavar="ADDRESS", help="of the Inception network, or a path")
    result.add_argument("--dominant", type=int, choices=(1, 2), default=1, help="pairs that balancing cuts")
    result.add_argument("--ratio", type=float, default=1.25, help="to this times the next most frequent")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--threads", type=int, default=2, help="another number, other last bits")
    result.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    result.add_argument("--cache", type=Path, default=Path(".cache"), help="folder that keeps features between runs")
    result.add_argument("--output", type=Path, required=True, metavar="FILE", help="the distances as JSON")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
