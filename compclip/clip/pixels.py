"""Convert image files to the pixels that a judge sees."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from compclip.clip.device import to_device
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError
from compclip.core.reading.pictures import BrokenImage, read_pixels

Box = tuple[float, float, float, float]

Item = tuple[Path | IO[bytes], Box | None]  # an image, and the bounding box of its object

RESIZED_AT_ONCE = 1 << 20  # numbers (3 a pixel) of the images that are resized together
BATCHES_AHEAD = 4  # read or being read, while another is used
# Images that a thread reads in a row; small ones of a size are resized together.
SHARD = 8
PREPROCESS: dict[str, Any] = {  # the defaults of open_clip's PreprocessCfg, in its order
    "size": 224,
    "mode": "RGB",
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "fill_color": 0,
}


def crop_around(box: Box, size: tuple[int, int], half: float) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the square around a box, clipped to the image, as the
    paper's judge crops.

    Args:
        box: x, y, width, height in pixels.
        size: the image's width and height.
        half: half the square's side, as a multiple of the box's longer side.
    """
    x, y, width, height = box
    image_width, image_height = size
    reach = int(max(width, height) * half)
    column = int(x + width / 2)
    row = int(y + height / 2)
    left = max(0, column - reach)
    top = max(0, row - reach)
    right = min(image_width, column + reach)
    bottom = min(image_height, row + reach)
    return left, top, right, bottom


def _resize_group(numbered: tuple[int, np.ndarray]) -> tuple[tuple[int, ...], int]:
    """Return what neighbors that are resized together share: their shape and the number of their
    batch.
    """
    row, pixels = numbered
    images_at_once = max(1, RESIZED_AT_ONCE // pixels.size)
    return pixels.shape, row // images_at_once


def resize(images: torch.Tensor, size: tuple[int, int], mode: str) -> torch.Tensor:
    """Resize bytes (n, 3, height, width) to ``size`` with antialiasing, as torchvision's v2
    transforms do.
    """
    if images.shape[-2:] == size:
        return images
    if len(images) == 1 and images.is_contiguous(memory_format=torch.channels_last):
        # With these strides, torch keeps the memory format of several images, and so the rounding.
        strides = (images.numel(), *images.stride()[1:])
        images = images.as_strided(images.shape, strides)
    return F.interpolate(images, size, mode=mode, align_corners=False, antialias=True)


class Reading(NamedTuple):
    """A batch of images that is being read."""

    pixels: np.ndarray
    shards: list[Future[None]]

    def wait(self) -> np.ndarray:
        """Return the pixels when all are read; raises UserError for a file that cannot be."""
        for shard in self.shards:
            shard.result()
        return self.pixels


class Preprocess:
    """open_clip's evaluation preprocessing in two steps: files to pixels, once, and pixels to
    floats, each time.

    open_clip resizes each image by Pillow. torch is several times as fast for small images; a few
    bytes differ by 1, seldom by 2 (one in 50,000 of sketches, one in 70 of noise). It is used only
    for ``shortest`` to a square: where the sides are scaled differently, or a tall image shrinks,
    torch resizes them in a different order than Pillow, and bytes of noise would differ by up to
    22.

    Args:
        cfg: open_clip's ``preprocess_cfg``.
        crop: half side of the crop around a bounding box; None for no crop.
    """

    def __init__(self, cfg: dict[str, Any], crop: float | None) -> None:
        self.cfg = cfg
        self.crop = crop
        size = cfg["size"]
        # height and width
        self.size: tuple[int, int] = (size, size) if isinstance(size, int) else (size[0], size[1])
        mean = np.array(cfg["mean"])
        std = np.array(cfg["std"])
        # (pixel / 255 - mean) / std = pixel * scale + shift
        # For a row of an image, colors interleaved as in memory: (width * 3,).
        width = self.size[1]
        self.scale = torch.tensor(np.tile(1 / (255 * std), width), dtype=torch.float32)
        self.shift = torch.tensor(np.tile(-mean / std, width), dtype=torch.float32)

    def read(self, items: Sequence[Item]) -> np.ndarray:
        """Return the images' bytes, (n, height, width, 3) uint8; UserError names a file that is not
        an image.
        """
        result = self._room(len(items))
        self._read_into(items, result)
        return result

    def read_ahead(self, items: Sequence[Item], batch: int, threads: int) -> Iterator[np.ndarray]:
        """Yield batches of what ``read`` returns; the next ones are read while this one is used.

        UserError names a file that is not an image.
        """
        pool = ThreadPoolExecutor(threads)
        ahead: deque[Reading] = deque()
        try:
            for first in range(0, len(items), batch):
                ahead.append(self._start_reading(pool, items[first : first + batch]))
                if len(ahead) > BATCHES_AHEAD:
                    yield ahead.popleft().wait()
            while ahead:
                yield ahead.popleft().wait()
        finally:
            # The batches ahead are not read if a file is damaged or the caller stops.
            pool.shutdown(cancel_futures=True)

    def _start_reading(self, pool: ThreadPoolExecutor, items: Sequence[Item]) -> Reading:
        """Start to read a batch in shards, so small that no thread waits for another's."""
        pixels = self._room(len(items))
        shards = []
        for first in range(0, len(items), SHARD):
            shard = slice(first, first + SHARD)
            shards.append(pool.submit(self._read_into, items[shard], pixels[shard]))
        return Reading(pixels, shards)

    def _room(self, n: int) -> np.ndarray:
        """Return an array for the bytes of n images, whose content is undefined."""
        return np.empty((n, *self.size, 3), np.uint8)

    def _read_into(self, items: Sequence[Item], result: np.ndarray) -> None:
        """Write what ``read`` returns into ``result``."""
        decoded = ((row, self._decode(*item)) for row, item in enumerate(items))
        # Groups are read one after the other, so that only one is in memory.
        for (shape, _), group in groupby(decoded, _resize_group):
            rows, images = zip(*group, strict=True)
            # Only a crop is copied if it is alone.
            together = (
                np.stack(images) if len(images) > 1 else np.ascontiguousarray(images[0])[None]
            )
            try:
                result[rows[0] : rows[-1] + 1] = self._fit(together)
            except ValueError as error:  # a side would have 0 pixels
                fault = f"{shape[1]} x {shape[0]} pixels cannot be resized ({error})"
                raise UserError(f"{items[rows[0]][0]}: {fault}; replace or remove it") from error

    def _decode(self, image: Path | IO[bytes], box: Box | None) -> np.ndarray:
        """Return the pixels of an image, (height, width, 3) bytes, cropped around its box."""
        try:
            pixels = read_pixels(image)
        except BrokenImage as error:
            fault = f"not a readable image ({error})"
            raise UserError(f"{image}: {fault}; replace or remove it") from error
        if box is None or self.crop is None:
            return pixels
        height, width, _ = pixels.shape
        left, top, right, bottom = crop_around(box, (width, height), self.crop)
        return pixels[top:bottom, left:right]

    def _fit(self, images: np.ndarray) -> np.ndarray:
        """Resize and crop images, (n, height, width, 3), to ``size``."""
        _, height, width, _ = images.shape
        is_square = self.size[0] == self.size[1]
        # whether torch resizes the sides in the order in which Pillow does
        same_order = height < 2 * width or width <= self.size[1]
        if self.cfg["resize_mode"] == "shortest" and is_square and same_order:
            return self._fit_by_torch(images)
        return self._fit_by_pillow(images)

    def _fit_by_pillow(self, images: np.ndarray) -> np.ndarray:
        library = open_clip().transform
        cfg = library.PreprocessCfg(**self.cfg)
        # without its last two steps, which make a tensor and normalize it
        steps = library.image_transform_v2(cfg, is_train=False).transforms[:-2]
        fitted = []
        for pixels in images:
            image = Image.fromarray(pixels)
            for step in steps:
                image = step(image)
            fitted.append(np.asarray(image))
        return np.stack(fitted)

    def _fit_by_torch(self, images: np.ndarray) -> np.ndarray:
        _, height, width, _ = images.shape
        side = self.size[0]
        shorter = min(height, width)
        resized_height = int(side * height / shorter)
        resized_width = int(side * width / shorter)
        mode = "bicubic"  # open_clip has only these two
        if self.cfg["interpolation"] == "bilinear":
            mode = "bilinear"
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2)
        resized = resize(pixels, (resized_height, resized_width), mode)
        top = round((resized_height - side) / 2)
        left = round((resized_width - side) / 2)
        cropped = resized[:, :, top : top + side, left : left + side]
        return cropped.permute(0, 2, 3, 1).numpy()

    def floats(
        self,
        images: np.ndarray,
        device: torch.device,
        change: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Normalize (n, height, width, 3) uint8 to float32 (n, 3, height, width), channels last in
        memory.

        ``change`` maps the bytes as floats to others of the same shape.
        """
        # torch takes no arrays with negative strides, and warns of arrays that cannot be written.
        images = np.require(images, requirements=["C", "W"])
        pixels = to_device(torch.from_numpy(images), device).float()
        if change is not None:
            pixels = change(pixels)
        rows = pixels.flatten(2)
        rows = rows.mul_(to_device(self.scale, device)).add_(to_device(self.shift, device))
        return rows.view(pixels.shape).permute(0, 3, 1, 2)
