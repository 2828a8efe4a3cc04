"""Measure the Fréchet inception distance of a generator's images from the real images of each
split.

As published: the real images of the split (of test_seen for swapped captions), whole, at 256 by 256
pixels; up to 10,000 generated images, drawn by seed. The 2048 features are those of the original
FID's Inception network, computed by torchmetrics. With fewer images than features, the covariance
is singular: the distance is biased upwards and comparable only at equal numbers of images. Swapped
entries are also balanced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.clip.vision import import_torchvision
from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import TESTS, is_further
from compclip.dataset.download import FileLocation, fetch
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
FID_BATCH = 32
FEATURES = 2048
DRAWN_KEY = ["split", *ENTRY]


def load_inception(weights: str, cache: Path) -> torch.nn.Module:
    """Load the network of the original FID; UserError if the file (URL or path) does not contain
    its weights.
    """
    path = fetch(FileLocation(weights), cache)
    try:
        # antialias=False: resizes as TensorFlow, from which the network comes.
        return fid.NoTrainInceptionV3(
            "inception-v3-compat", [str(FEATURES)], str(path), antialias=False
        )
    except Exception as error:  # of many types; code in the file does not run
        fault = f"not the Inception network's weights ({one_line(error)[:150]})"
        raise UserError(f"{path}: {fault}") from error


@dataclass(frozen=True)
class FidSettings:
    """How distances are measured.

    Attributes:
        results: folder that paths of images are relative to.
        serves: the splits that the generator serves.
        balancing, composition: how many swapped pairs are dominant.
        seed: draws the generated images, and which balanced ones are kept.
    """

    results: str | Path
    serves: Sequence[str] = TESTS
    composition: str = ""
    balancing: Balance = field(default_factory=Balance)
    seed: int = 0
    device: str | torch.device = "cpu"


class FidMetric:
    """The Fréchet distance between sets of images.

    Args:
        network: of ``load_inception``; maps pixels (n, 3, 256, 256), uint8, to features.
    """

    def __init__(self, network: Any, settings: FidSettings) -> None:
        self.settings = settings
        metric = fid.FrechetInceptionDistance(feature=network.eval())
        self.metric = metric.to(settings.device)

    def distance(self, name: str, real: pd.Series, drawn: pd.Series) -> float | None:
        """Return the distance of two sets of images (Heusel et al. 2017, equation 6); None for
        fewer than two.
        """
        if len(drawn) > MOST:
            stream = rng(self.settings.seed, "score_fid", name)
            drawn = drawn.iloc[np.sort(stream.choice(len(drawn), MOST, replace=False))]
        if min(len(real), len(drawn)) < 2:
            return None
        # The metric accumulates features until it is reset.
        self.metric.reset()
        self._add(real, is_real=True)
        self._add(drawn, is_real=False)
        products = (self.metric.real_features_cov_sum, self.metric.fake_features_cov_sum)
        # Before the distance, because eigenvalues of NaN end the process on some machines.
        is_finite = all(bool(torch.isfinite(product).all()) for product in products)
        fault = "features of an image are NaN or infinite"
        require(is_finite, "manifest", fault, "check the weights")
        value = float(self.metric.compute())
        # For equal sets, rounding may give a value below 0.
        return max(0.0, round(value, DECIMALS))

    def _add(self, paths: pd.Series, *, is_real: bool) -> None:
        """Add the features of images, in batches."""
        results = Path(self.settings.results)
        for start in range(0, len(paths), FID_BATCH):
            batch = paths[start : start + FID_BATCH]
            # Whole images, without a box.
            items = [(results / path, None) for path in batch]
            pixels = FID_PIXELS.read(items)
            # From (n, height, width, 3) to (n, 3, height, width).
            tensor = torch.from_numpy(pixels).permute(0, 3, 1, 2)
            self.metric.update(tensor.to(self.settings.device), real=is_real)


def score_fid(
    images: pd.DataFrame,
    splits: pd.DataFrame,
    prompts: pd.DataFrame,
    manifest: pd.DataFrame,
    network: Any,
    settings: FidSettings,
) -> dict[str, dict[str, Any]]:
    """Return the distance of each split that the generator serves (None for fewer than two
    images), and the sizes.

    Args:
        images, splits, prompts, manifest: columns of ``IMAGES``, ``SPLIT``, ``PROMPTS`` and
            ``MANIFEST`` in ``tables``.
        network: as of ``FidMetric``.
    """
    images = images.dropna(subset="path").merge(splits, on="image_id").sort_values("image_id")
    prompts = prompts[~is_further(prompts)]
    made = manifest.query("status == 'ok'").sort_values(DRAWN_KEY)
    made = made.merge(prompts[[*DRAWN_KEY, "pair"]], on=DRAWN_KEY)
    # One metric for all splits, since it holds the network.
    metric = FidMetric(network, settings)
    distances: dict[str, dict[str, Any]] = {}
    for split in settings.serves:
        # Swapped captions are of images of test_seen.
        origin = "test_seen" if split == "test_swapped" else split
        real = images.loc[images["split"] == origin, "path"]
        fault = f"no image of {origin} has a file"
        require(len(real), "images", fault, "there is nothing to compare with")
        drawn = made[made["split"] == split]
        sizes = {"generated": min(len(drawn), MOST), "real": len(real)}
        note = f"{sizes['generated']:,} generated and {sizes['real']:,} real images"
        if min(sizes.values()) <= FEATURES:
            note += f", too few for {FEATURES:,} features: biased upwards"
        # All real images of the split, also those that are not prompted for, as published.
        distance = metric.distance(split, real, drawn["path"])
        distances[split] = {"fid": distance, **sizes, "about": note}
        if split == "test_swapped" and len(drawn):
            pairs = drawn["pair"].tolist()
            dominant = settings.balancing.dominant_of(settings.composition)
            cap = balance.cap_dominant(pairs, dominant, settings.balancing.ratio)
            kept = drawn.iloc[balance.subsample(pairs, cap, settings.seed)]
            distances[split]["balanced"] = metric.distance("balanced", real, kept["path"])
        log.info("%s: FID %s, %s", split, distance, note)
    return distances
