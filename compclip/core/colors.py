"""Convert colors to sRGB as browsers do: by the ICC profile of an image file, or by the chunks of a PNG."""

import io
import struct
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image, ImageChops, ImageCms, ImageFile, PngImagePlugin

ToSrgb = Callable[[Image.Image], Image.Image]

SRGB = ImageCms.createProfile("sRGB")
PROFILE_MODES = {"GRAY": "L", "RGB ": "RGB", "CMYK": "CMYK"}
# A profile that moves no color of this grid by more is one of the many versions of sRGB.
MOVED = 2
GRID = Image.fromarray(15 * np.indices((18, 18, 18), np.uint8).T.reshape(-1, 18, 3))
# How a PNG states sRGB: cICP; gAMA; cHRM, with x and y of white, red, green and blue. Writers round.
CODES = b"\x01\x0d"
GAMMA = 0.45455
PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
ROUNDING = 0.015
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Length and name of a chunk, before its data; a checksum follows the data.
CHUNK = struct.Struct(">I4s")
CHECKSUM_BYTES = 4


@lru_cache(maxsize=16)
def by_profile(profile: bytes, mode: str) -> ToSrgb | None:
    """Return the conversion by an ICC profile; None if it is sRGB, damaged, or not for images of this mode."""
    try:
        opened = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        profile_mode = PROFILE_MODES.get(opened.profile.xcolor_space, "")
        if profile_mode != mode and (profile_mode, mode) != ("RGB", "L"):
            return None
        intent = ImageCms.Intent.RELATIVE_COLORIMETRIC
        transform = ImageCms.buildTransform(opened, SRGB, profile_mode, "RGB", intent)
    except (OSError, ValueError, ImageCms.PyCMSError):
        return None

    def convert(image: Image.Image) -> Image.Image:
        return transform.apply(image.convert(profile_mode))

    sample = GRID.convert(mode)
    moved = ImageChops.difference(convert(sample), sample.convert("RGB"))
    return convert if np.asarray(moved).max() > MOVED else None


def png_chunk(content: bytes, name: bytes) -> bytes:
    """Return the data of the first chunk with a name in the content of a PNG, b"" if there is none.

    Chunks are walked from the signature on: a palette may contain the same bytes as the name by chance.
    """
    place = len(PNG_SIGNATURE)
    while place + CHUNK.size <= len(content):
        length, kind = CHUNK.unpack_from(content, place)
        begin = place + CHUNK.size
        if kind == name:
            return content[begin : begin + length]
        place = begin + length + CHECKSUM_BYTES
    return b""


def conversion(image: ImageFile.ImageFile, mode: str) -> ToSrgb | None:
    """Return the conversion of an image's colors to RGB; None if they are sRGB.

    Args:
        image: opened, not decoded.
        mode: what its colors are decoded to: L, RGB or CMYK.

    Raises:
        ValueError: the chunks of a PNG state other colors than sRGB, without a profile.
    """
    info = image.info
    if isinstance(image, PngImagePlugin.PngImageFile) and image.fp:
        # Pillow has read to the pixels, and dropped this chunk, which precedes all others.
        end = image.fp.tell()
        image.fp.seek(0)
        codes = png_chunk(image.fp.read(end), b"cICP")
        if codes:
            info = {"gamma": GAMMA if codes.startswith(CODES) else 0}
    if "icc_profile" in info:
        return by_profile(info["icc_profile"], mode)
    stated = info.get("gamma"), *info.get("chromaticity", PRIMARIES)
    if "gamma" in info and "srgb" not in info and not np.allclose(stated, (GAMMA, *PRIMARIES), 0, ROUNDING):
        raise ValueError("colors that are not sRGB, by its chunks cICP, gAMA and cHRM; convert it to sRGB")
    return None
