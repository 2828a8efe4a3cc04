"""Measure the Fréchet inception distance of a generator's images from the real images of each
split.

As published: the real images of the split (of test_seen for swapped captions), whole, at 256 by 256
pixels; up to 10,000 generated images, drawn by seed. The 2048 features are those of the original
FID's Inception network, computed by torchmetrics. With fewer images than features, the covariance
is singular: the distance is biased upwards and comparable only at equal numbers of images. Swapped
entries are also balanced.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.clip.vision import import_torchvision
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.core.tables import TESTS, is_further
from compclip.dataset.download import FilePlace, fetch
from compclip.score.config import Balance
from compclip.score.entries import ENTRY
from compclip.stats import balance

import_torchvision()
from torchmetrics.image import fid  # noqa: E402

# Images are stretched to the size of the paper's models, as in the released code.
FID_PIXELS = Preprocess(
    {**PREPROCESS, "size": 256, "resize_mode": "squash", "interpolation": "bilinear"}, None
)
MOST = 10_000  # largest number of generated images of a split, as published
FID_BATCH, FEATURES, DRAWN_KEY = 32, 2048, ["split", *ENTRY]


def load_inception(weights: str, cache: Path) -> torch.nn.Module:
    """Load the network of the original FID; UserError if the file (URL or path) does not contain
    its weights.
    """
    path = fetch(FilePlace(weights), cache)
    try:  # antialias=False: resizes as TensorFlow, from which the network comes
        return fid.NoTrainInceptionV3(
            "inception-v3-compat", [str(FEATURES)], str(path), antialias=False
        )
    except Exception as error:  # of many types; code in the file does not run
        raise UserError(
            f"{path}: not the Inception network's weights ({one_line(error)[:150]})"
        ) from error


def score_fid(
    images: pd.DataFrame,
    splits: pd.DataFrame,
    prompts: pd.DataFrame,
    manifest: pd.DataFrame,
    network: Any,
    *,
    results: str | Path,
    serves: Sequence[str] = TESTS,
    composition: str = "",
    balancing: Balance | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> dict[str, dict[str, Any]]:
    """Return the distance of each split that the generator ``serves`` (None for fewer than two
    images), and the sizes.

    Args:
        images, splits, prompts, manifest: columns of ``IMAGES``, ``SPLIT``, ``PROMPTS`` and
            ``MANIFEST`` in ``tables``.
        network: of ``load_inception``; maps pixels (n, 3, 256, 256), uint8, to features.
        results: folder that paths in ``images`` and ``manifest`` are relative to.
    """
    images = images.dropna(subset="path").merge(splits, on="image_id").sort_values("image_id")
    prompts = prompts[~is_further(prompts)]
    made = (
        manifest.query("status == 'ok'")
        .sort_values(DRAWN_KEY)
        .merge(prompts[[*DRAWN_KEY, "pair"]], on=DRAWN_KEY)
    )
    metric = fid.FrechetInceptionDistance(feature=network.eval()).to(device)

    def distance(name: str, real: pd.Series, drawn: pd.Series) -> float | None:
        """Return the distance of two sets of images (Heusel et al. 2017, equation 6); None for
        fewer than two.
        """
        if len(drawn) > MOST:
            drawn = drawn.iloc[
                np.sort(rng(seed, "score_fid", name).choice(len(drawn), MOST, replace=False))
            ]
        if min(len(real), len(drawn)) < 2:
            return None
        metric.reset()
        for paths, is_real in ((real, True), (drawn, False)):
            for start in range(0, len(paths), FID_BATCH):
                pixels = FID_PIXELS.read(
                    [(Path(results) / path, None) for path in paths[start : start + FID_BATCH]]
                )
                metric.update(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(device), real=is_real)
        value = float(metric.compute())
        require(
            np.isfinite(value),
            "manifest",
            "features of an image are NaN or infinite",
            "check the weights",
        )
        return max(0.0, round(value, DECIMALS))  # for equal sets, rounding may give a value below 0

    distances: dict[str, dict[str, Any]] = {}
    for split in serves:
        origin, drawn = (
            "test_seen" if split == "test_swapped" else split,
            made[made["split"] == split],
        )
        real = images.loc[images["split"] == origin, "path"]
        require(
            len(real),
            "images",
            f"no image of {origin} has a file",
            "there is nothing to compare with",
        )
        sizes = {"generated": min(len(drawn), MOST), "real": len(real)}
        about = f"{sizes['generated']:,} generated and {sizes['real']:,} real images"
        if min(sizes.values()) <= FEATURES:
            about += f", too few for {FEATURES:,} features: biased upwards"
        distances[split] = {"fid": distance(split, real, drawn["path"]), **sizes, "about": about}
        if split == "test_swapped" and len(drawn):
            pairs, settings = drawn["pair"].tolist(), balancing or Balance()
            cut = balance.cut_dominant(pairs, settings.dominant_of(composition), settings.ratio)
            kept = drawn.iloc[balance.subsample(pairs, cut, seed)]
            distances[split]["balanced"] = distance("balanced", real, kept["path"])
        log.info("%s: FID %s, %s", split, distances[split]["fid"], about)
    return distances
