"""From an image file to the pixels that a judge sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.vision import import_torchvision

import_torchvision()

from open_clip.transform import PreprocessCfg, image_transform_v2  # noqa: E402

Box = tuple[float, float, float, float]
Item = tuple[Path, Box | None]


def crop_around(box: Box, size: tuple[int, int], half: float) -> tuple[int, int, int, int]:
    """The square around a bounding box, clipped to the image (facts of the paper's judge).

    box: x, y, width, height in pixels; size: the image's width and height; half: half the square's side, in
    longer sides of the box. Returns left, top, right, bottom.
    """
    x, y, width, height = box
    reach = int(max(width, height) * half)
    column, row = int(x + width / 2), int(y + height / 2)
    return max(0, column - reach), max(0, row - reach), min(size[0], column + reach), min(size[1], row + reach)


class Preprocess:
    """open_clip's evaluation preprocessing in two halves: files to bytes, once, and bytes to floats, each time.

    cfg: open_clip's ``preprocess_cfg``. crop: half side of the crop around a bounding box, None for no crop.
    """

    def __init__(self, cfg: dict[str, Any], crop: float | None) -> None:
        self.cfg, self.crop = cfg, crop
        # The last two steps of open_clip's transform make a tensor and normalize it.
        self.fit: list[Callable[[Image.Image], Image.Image]] = image_transform_v2(
            PreprocessCfg(**cfg), is_train=False
        ).transforms[:-2]
        size = cfg["size"]
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def read(self, item: Item) -> np.ndarray:
        """The image's bytes, (height, width, 3) uint8; UserError where the file is no image."""
        path, box = item
        try:
            with Image.open(path) as file:
                image = file.convert("RGB")
        except FileNotFoundError:
            raise
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
            raise UserError(f"{path}: not a readable image ({error}): replace it or leave it out") from error
        if box is not None and self.crop is not None:
            image = image.crop(crop_around(box, image.size, self.crop))
        for step in self.fit:
            image = step(image)
        return np.array(image)

    def floats(self, images: np.ndarray, device: torch.device) -> torch.Tensor:
        """(n, height, width, 3) uint8 to (n, 3, height, width) normalized float32, channels last in memory."""
        mean = torch.tensor(self.cfg["mean"], device=device).view(1, 3, 1, 1)
        std = torch.tensor(self.cfg["std"], device=device).view(1, 3, 1, 1)
        pixels = torch.from_numpy(np.require(images, requirements=["C", "W"])).to(device).permute(0, 3, 1, 2)
        return (pixels.float() / 255 - mean) / std
