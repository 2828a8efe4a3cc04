"""The pictures that people see: of one format whoever made them, and those of tasks with a known answer."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from workflow_scripts.core.errors import UserError

# Longer side of a picture, pixels; as PNG up to the second number, where a JPEG would show.
SIDE, SMALL = 512, 160
# A side of the drawn pictures, pixels, and the tiles on a side of a broken one.
DRAWN, TILES = 256, 8
# Told apart with any colour vision.
COLORS = {"black": (20, 20, 20), "yellow": (240, 205, 30), "blue": (30, 80, 200)}
SHAPES = ("circle", "square", "triangle")


def read_picture(path: Path) -> Image.Image:
    """RGB, at most ``SIDE`` on its longer side. Raises UserError where the file cannot be read."""
    try:
        with Image.open(path) as image:
            small = image.convert("RGB")
    # Pillow's decoders raise nearly anything on damaged files.
    except Exception as error:
        raise UserError(f"{path}: not a readable image ({' '.join(str(error).split())}): make it again") from error
    small.thumbnail((SIDE, SIDE))
    return small


def encode(image: Image.Image) -> tuple[bytes, str]:
    """The file's bytes and its suffix, without a word of where the picture is from."""
    buffer = io.BytesIO()
    if max(image.size) <= SMALL:
        image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue(), "png"
    image.save(buffer, "JPEG", quality=92, subsampling=0)
    return buffer.getvalue(), "jpg"


def broken(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """The picture cut in ``TILES`` by ``TILES`` tiles, laid in another order: nobody takes it for real."""
    size = max(TILES, min(image.size) // TILES * TILES)
    pixels = np.asarray(image.resize((size, size)))
    side = size // TILES
    tiles = pixels.reshape(TILES, side, TILES, side, 3).swapaxes(1, 2).reshape(TILES * TILES, side, side, 3)
    mixed = tiles[generator.permutation(len(tiles))].reshape(TILES, TILES, side, side, 3).swapaxes(1, 2)
    return Image.fromarray(mixed.reshape(size, size, 3)).resize(image.size)


def drawn(color: str, shape: str) -> Image.Image:
    """A shape of a color on white."""
    image = Image.new("RGB", (DRAWN, DRAWN), "white")
    pen = ImageDraw.Draw(image)
    near, far = DRAWN // 4, DRAWN * 3 // 4
    if shape == "circle":
        pen.ellipse((near, near, far, far), fill=COLORS[color])
    elif shape == "square":
        pen.rectangle((near, near, far, far), fill=COLORS[color])
    else:
        pen.polygon([(DRAWN // 2, near), (near, far), (far, far)], fill=COLORS[color])
    return image


def drawn_text(color: str, shape: str) -> str:
    return f"a {color} {shape}"
