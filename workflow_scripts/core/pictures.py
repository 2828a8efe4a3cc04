"""Whether an image file can be read, found out without keeping its pixels."""

from __future__ import annotations

import warnings
from pathlib import Path

from PIL import Image, UnidentifiedImageError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


class BrokenImage(Exception):
    """The message says why a file is no readable image."""


def image_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels of a file that can be decoded to its end. Raises BrokenImage."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                image.verify()
            with Image.open(path) as image:
                size = image.size
                # verify() misses a JPEG that ends too early; decoding at an eighth does not.
                image.draft("RGB", (max(1, size[0] // 8), max(1, size[1] // 8)))
                image.load()
    except FileNotFoundError:
        raise
    except UnidentifiedImageError as error:
        raise BrokenImage("no image of a known format") from error
    # Pillow's decoders raise nearly anything on damaged files.
    except Exception as error:
        # Without the folder: the message goes into artifacts.
        raise BrokenImage(" ".join(str(error).replace(str(path), path.name).split())[:200]) from error
    return size
