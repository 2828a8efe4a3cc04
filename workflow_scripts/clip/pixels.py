"""From an image file to the pixels that a judge sees."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import imagecodecs
import numpy as np
import torch
from PIL import Image, UnidentifiedImageError

from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core.errors import UserError

import_torchvision()

from open_clip.transform import PreprocessCfg, image_transform_v2  # noqa: E402
from torchvision.transforms.v2 import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as vision  # noqa: E402

Box = tuple[float, float, float, float]


class Content(NamedTuple):
    """An image file's bytes, and what it is called in messages: of a tar, say."""

    raw: bytes
    name: str


# An image, as a file or what would stand in it, and the bounding box of what it shows.
Item = tuple[Path | Content, Box | None]

# Images that are resized together where they are of one size; so many lie in memory as they were decoded.
FITTED_AT_ONCE = 16


def crop_around(box: Box, size: tuple[int, int], half: float) -> tuple[int, int, int, int]:
    """The square around a bounding box, clipped to the image (facts of the paper's judge).

    box: x, y, width, height in pixels; size: the image's width and height; half: half the square's side, in
    longer sides of the box. Returns left, top, right, bottom.
    """
    x, y, width, height = box
    reach = int(max(width, height) * half)
    column, row = int(x + width / 2), int(y + height / 2)
    return max(0, column - reach), max(0, row - reach), min(size[0], column + reach), min(size[1], row + reach)


def _decode_png(raw: bytes, room: np.ndarray | None) -> np.ndarray | None:
    """The pixels of an ordinary PNG of eight bits, in half of Pillow's time and beside other threads.

    room: where they are put if they have its shape. None for anything else, and for a file in which something is
    wrong: Pillow says what.
    """
    if raw[:8] != b"\x89PNG\r\n\x1a\n" or len(raw) < 33:
        return None
    width, height, depth, kind = struct.unpack(">IIBB", raw[16:26])
    # Kind 2 has three colors a pixel, kind 3 a palette.
    if depth != 8 or kind not in (2, 3) or width * height > (Image.MAX_IMAGE_PIXELS or 0):
        return None
    try:
        fits = room is not None and room.shape == (height, width, 3)
        pixels = imagecodecs.png_decode(raw, out=room if fits else None)
    except imagecodecs.PngError:
        return None
    return pixels if pixels.shape == (height, width, 3) else None


class Preprocess:
    """open_clip's evaluation preprocessing in two halves: files to pixels, once, and pixels to floats, each time.

    cfg: open_clip's ``preprocess_cfg``. crop: half side of the crop around a bounding box, None for no crop.

    open_clip resizes each image by Pillow. torch does the same with many at once, ten times as fast where they
    are small; a byte then differs by 1 here and there (of sketches one in 50,000, of noise one in 70).
    """

    def __init__(self, cfg: dict[str, Any], crop: float | None) -> None:
        self.cfg, self.crop = cfg, crop
        size = cfg["size"]
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        mean, std = np.array(cfg["mean"]), np.array(cfg["std"])
        # For a row of an image, color by color, as it lies in memory: (width * 3,).
        self.scale = torch.tensor(np.tile(1 / (255 * std), self.size[1]), dtype=torch.float32)
        self.shift = torch.tensor(np.tile(-mean / std, self.size[1]), dtype=torch.float32)

    def read(self, items: Sequence[Item]) -> np.ndarray:
        """The images' bytes, (n, height, width, 3) uint8; UserError names a file that is no image."""
        result = np.empty((len(items), *self.size, 3), np.uint8)
        # Kept, for new memory costs more than what is done in it.
        room = np.empty((FITTED_AT_ONCE, 0, 0, 3), np.uint8)
        for start in range(0, len(items), FITTED_AT_ONCE):
            part = result[start : start + FITTED_AT_ONCE]
            chosen = items[start : start + FITTED_AT_ONCE]
            images = [self._decode(*item, place) for item, place in zip(chosen, room, strict=False)]
            shapes = [image.shape for image in images]
            for shape in set(shapes):
                rows = [row for row, other in enumerate(shapes) if other == shape]
                if room.shape[1:] != shape:
                    room = np.empty((FITTED_AT_ONCE, *shape), np.uint8)
                # An image that was decoded in the room lies in its place or behind it, and is moved in its turn.
                part[rows] = self._fit(np.stack([images[row] for row in rows], out=room[: len(rows)]))
        return result

    def _decode(self, image: Path | Content, box: Box | None, room: np.ndarray) -> np.ndarray:
        """The pixels of an image, (height, width, 3) bytes; in ``room`` where they are decoded to its shape."""
        if isinstance(image, Content):
            raw, name = image
        else:
            name = str(image)
            with open(image, "rb", buffering=0) as file:  # a buffer costs as much as a small image
                raw = file.read()
        try:
            pixels = _decode_png(raw, None if box else room)
            if pixels is None:
                with Image.open(io.BytesIO(raw)) as file:
                    pixels = np.array(file.convert("RGB"))
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
            raise UserError(f"{name}: not a readable image ({error}): replace it or leave it out") from error
        if box is not None and self.crop is not None:
            height, width, _ = pixels.shape
            left, top, right, bottom = crop_around(box, (width, height), self.crop)
            pixels = pixels[top:bottom, left:right]
        return pixels

    def _fit(self, images: np.ndarray) -> np.ndarray:
        mode = self.cfg["resize_mode"]
        if mode == "squash":
            to = list(self.size)
        elif mode == "shortest" and self.size[0] == self.size[1]:
            to = [self.size[0]]
        else:
            # open_clip's own steps, but for the last two, which make a tensor and normalize it.
            steps = image_transform_v2(PreprocessCfg(**self.cfg), is_train=False).transforms[:-2]
            return np.stack([reduce(lambda image, step: step(image), steps, Image.fromarray(i)) for i in images])
        # open_clip knows these two.
        by = InterpolationMode.BILINEAR if self.cfg["interpolation"] == "bilinear" else InterpolationMode.BICUBIC
        pixels = vision.resize(torch.from_numpy(images).permute(0, 3, 1, 2), to, by, antialias=True)
        return vision.center_crop(pixels, list(self.size)).permute(0, 2, 3, 1).numpy()

    def floats(self, images: np.ndarray, device: torch.device) -> torch.Tensor:
        """(n, height, width, 3) uint8 to (n, 3, height, width) normalized float32, channels last in memory."""
        pixels = torch.from_numpy(np.require(images, requirements=["C", "W"])).to(device)
        rows = pixels.flatten(2).float().mul_(self.scale.to(device)).add_(self.shift.to(device))
        return rows.view(pixels.shape).permute(0, 3, 1, 2)
