"""An image is read right or refused, whatever its format."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.core.errors import UserError
from compclip.core.pictures import BrokenImage, image_size, read_rgb

RAMP = np.arange(256, dtype=np.uint8).repeat(4).reshape(32, 32)


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_sixteen_bits_are_scaled_and_color_spaces_and_animations_read(tmp_path: Path) -> None:
    raw = saved(Image.fromarray(RAMP.astype(np.uint16) * 257), "PNG")
    assert image_size(io.BytesIO(raw)) == (32, 32)
    assert (np.asarray(read_rgb(io.BytesIO(raw))) == RAMP[..., None]).all()
    (tmp_path / "x.png").write_bytes(raw)
    assert (Preprocess({**PREPROCESS, "size": 32}, None).read([(tmp_path / "x.png", None)]) == RAMP[..., None]).all()
    red, blue = (Image.new("RGB", (8, 8), color) for color in ("red", "blue"))
    for raw in (
        saved(red.convert("CMYK"), "JPEG"),
        saved(red.convert("P"), "GIF"),
        saved(red, "WEBP", save_all=True, append_images=[blue], lossless=True),
        saved(red, "PNG", save_all=True, append_images=[blue]),
        saved(red.convert("RGBA"), "PNG"),
    ):
        pixel = np.asarray(read_rgb(io.BytesIO(raw)))[4, 4].astype(int)
        assert pixel[0] > 240 and pixel[1] < 20 and pixel[2] < 20


def huge_png(side: int) -> bytes:
    """Return a PNG of a few hundred bytes that claims to have ``side`` rows and columns."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no image of a known format"),
        (b"\x00\xff" * 50, "no image of a known format"),
        (huge_png(20_000), r"too many pixels, more than the limit of 178,956,970 \(core/limits.py: PIXELS\)"),
        (saved(Image.new("L", (3, 1501)), "PNG"), "3 by 1501 pixels, a ratio, more than the limit of 500 "),
        (saved(Image.fromarray(RAMP.astype(np.int32)), "TIFF"), "32 bits per channel; convert it to 8 bits"),
        (saved(Image.fromarray(RAMP.astype(np.float32)), "TIFF"), "32 bits per channel"),
        *((saved(Image.fromarray(RAMP), kind)[:-40], "(?i)truncated") for kind in ("PNG", "JPEG")),
        (saved(Image.fromarray(RAMP), "WEBP")[:-40], "could not create decoder object"),
    ],
)
def test_broken_images(tmp_path: Path, raw: bytes, message: str) -> None:
    file = tmp_path / "x.png"
    file.write_bytes(raw)
    for read in (image_size, read_rgb):
        with pytest.raises(BrokenImage, match=message) as error:
            read(file)
        assert "\n" not in str(error.value) and str(tmp_path) not in str(error.value)
    with pytest.raises(UserError, match="x.png: not a readable image"):
        Preprocess(PREPROCESS, None).read([(file, None)])
