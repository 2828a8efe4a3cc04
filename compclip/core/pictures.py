"""Decode image files."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, UnidentifiedImageError

from compclip.core import limits
from compclip.core.errors import memory_for

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
# Pillow warns above this number of pixels, and refuses images of more than twice as many.
Image.MAX_IMAGE_PIXELS = limits.PIXELS // 2
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


class BrokenImage(Exception):
    """The file is not a readable image; the message, which goes into artifacts, says why."""


@contextmanager
def _faults(file: Path | IO[bytes]) -> Iterator[None]:
    """Turn Pillow's exceptions for unreadable files into BrokenImage."""
    try:
        yield
    except (FileNotFoundError, MemoryError, BrokenImage):
        raise
    except UnidentifiedImageError as error:
        raise BrokenImage("no image of a known format") from error
    except Image.DecompressionBombError as error:
        raise BrokenImage(limits.over("PIXELS", "too many pixels")) from error
    except Exception as error:  # Pillow's decoders raise many types for damaged files
        # The message goes into artifacts, so it does not name the folder.
        name = getattr(file, "name", "the file")
        raise BrokenImage(" ".join(str(error).replace(str(file), name).split())[:200]) from error


def _check(image: Image.Image) -> None:
    # Pillow would clip these values to 255; it refuses too many pixels itself.
    if image.mode in ("I", "F"):
        raise BrokenImage("32 bits per channel; convert it to 8 bits")
    if max(image.size) > limits.ASPECT * min(image.size):
        raise BrokenImage(limits.over("ASPECT", f"{image.width} by {image.height} pixels, a ratio"))


def image_size(file: Path | IO[bytes]) -> tuple[int, int]:
    """Return width and height in pixels of an image file; raises BrokenImage unless it can be decoded to its end."""
    with memory_for(file), _faults(file):
        with Image.open(file) as image:
            image.verify()
        with Image.open(file) as image:
            _check(image)
            size = image.size
            # verify() accepts a truncated JPEG; decoding it at an eighth of its size fails.
            image.draft("RGB", (max(1, size[0] // 8), max(1, size[1] // 8)))
            image.load()
    return size


def read_rgb(file: Path | IO[bytes]) -> Image.Image:
    """Return an image with 8 bits per channel, the first frame of an animation. Raises BrokenImage."""
    with memory_for(file), _faults(file), Image.open(file) as image:
        _check(image)
        if image.mode.startswith("I;16"):
            # The upper 8 bits: Pillow would clip values to 255.
            return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
        return image.convert("RGB")
