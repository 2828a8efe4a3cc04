"""Convert colors to sRGB as browsers do: by the ICC profile of an image file, or by the chunks of a
PNG.
"""

import io
from collections.abc import Callable
from functools import lru_cache
from typing import IO

import numpy as np
from PIL import Image, ImageChops, ImageCms, ImageFile, PngImagePlugin

ToSrgb = Callable[[Image.Image], Image.Image]

SRGB = ImageCms.createProfile("sRGB")
PROFILE_MODES = {"GRAY": "L", "RGB ": "RGB", "CMYK": "CMYK"}
# A profile that moves no color of this grid by more is one of the many versions of sRGB.
MOVED = 2
GRID = Image.fromarray(15 * np.indices((18, 18, 18), np.uint8).T.reshape(-1, 18, 3))
# How a PNG states sRGB: cICP; gAMA; cHRM, with x and y of white, red, green and blue. Writers
# round.
CODES = b"\x01\x0d"
GAMMA = 0.45455
PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
ROUNDING = 0.015
SIGNATURE_BYTES = 8  # before the first chunk of a PNG
CHECKSUM_BYTES = 4  # after the data of each


@lru_cache(maxsize=16)
def by_profile(profile: bytes, mode: str) -> ToSrgb | None:
    """Return the conversion by an ICC profile; None if it is sRGB, damaged, or not for images of
    this mode.
    """
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


def codes_of(png: IO[bytes]) -> bytes:
    """Return the data of chunk cICP, which Pillow drops, of a PNG that is read to its pixels; b""
    if there is none.
    """
    end = png.tell()
    png.seek(SIGNATURE_BYTES)
    # Not searched for by its name, which a palette may contain by chance.
    chunks = PngImagePlugin.ChunkStream(png)
    name = b""
    while name not in (b"cICP", b"IDAT"):
        name, begin, length = chunks.read()
        png.seek(begin + length + CHECKSUM_BYTES)
    png.seek(begin)
    codes = png.read(length) if name == b"cICP" else b""
    png.seek(end)
    return codes


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
        codes = codes_of(image.fp)
        if codes:  # it precedes all other chunks
            info = {"gamma": GAMMA if codes.startswith(CODES) else 0}
    if "icc_profile" in info:
        return by_profile(info["icc_profile"], mode)
    stated = info.get("gamma"), *info.get("chromaticity", PRIMARIES)
    if (
        "gamma" in info
        and "srgb" not in info
        and not np.allclose(stated, (GAMMA, *PRIMARIES), 0, ROUNDING)
    ):
        raise ValueError(
            "colors that are not sRGB, by its chunks cICP, gAMA and cHRM; convert it to sRGB"
        )
    return None
