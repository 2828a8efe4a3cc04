"""Check that an image file can be decoded."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import IO

from PIL import Image, UnidentifiedImageError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


class BrokenImage(Exception):
    """The file is not a readable image; the message, which goes into artifacts, says why."""


def image_size(path: Path | IO[bytes]) -> tuple[int, int]:
    """Return width and height in pixels of a file that can be decoded to its end; else raises BrokenImage."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                image.verify()
            with Image.open(path) as image:
                size = image.size
                # verify() accepts a truncated JPEG; decoding it at an eighth of its size fails.
                image.draft("RGB", (max(1, size[0] // 8), max(1, size[1] // 8)))
                image.load()
    except FileNotFoundError:
        raise
    except UnidentifiedImageError as error:
        raise BrokenImage("no image of a known format") from error
    except Exception as error:  # Pillow's decoders raise many types for damaged files
        # Without the folder, because the message goes into artifacts.
        raise BrokenImage(" ".join(str(error).replace(str(path), path.name).split())[:200]) from error
    return size
