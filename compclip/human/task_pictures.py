"""The pictures of tasks: in one format regardless of their source, and those of tasks with a known
answer.
"""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from compclip.core.errors import UserError
from compclip.core.reading.pictures import BrokenImage, read_rgb

MAX_SIDE = 512  # pixels of the longer side
MAX_PNG_SIDE = 160  # up to this side a picture is PNG, because JPEG artifacts would be visible
DRAWN_SIDE = 256
TILES = 8  # per side of a broken picture
# distinguishable with any color vision
DRAWN_COLORS = {"black": (20, 20, 20), "yellow": (240, 205, 30), "blue": (30, 80, 200)}
DRAWN_SHAPES = {"circle": 90, "square": 4, "triangle": 3}  # sides


def read_picture(path: Path) -> Image.Image:
    """Return the picture in RGB, at most ``MAX_SIDE`` on its longer side; raises UserError if it is
    not readable.
    """
    try:
        small = read_rgb(path)
    except (BrokenImage, FileNotFoundError) as error:
        raise UserError(
            f"{path}: not a readable image ({error}); delete it and run again"
        ) from error
    small.thumbnail((MAX_SIDE, MAX_SIDE))
    return small


def encode_picture(image: Image.Image) -> tuple[bytes, str]:
    """Return the file's bytes, without metadata, and its suffix."""
    buffer = io.BytesIO()
    if max(image.size) <= MAX_PNG_SIDE:
        image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue(), "png"
    image.save(buffer, "JPEG", quality=92, subsampling=0)
    return buffer.getvalue(), "jpg"


def broken(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Return the picture with its ``TILES`` by ``TILES`` tiles shuffled, so that it does not look
    real.
    """
    # Square and a multiple of the tiles; it gets its own size again at the end.
    size = max(TILES, min(image.size) // TILES * TILES)
    pixels = np.asarray(image.resize((size, size)))
    tile = size // TILES
    grid = pixels.reshape(TILES, tile, TILES, tile, 3).swapaxes(1, 2)
    tiles = grid.reshape(TILES * TILES, tile, tile, 3)
    shuffled = tiles[generator.permutation(len(tiles))]
    grid = shuffled.reshape(TILES, TILES, tile, tile, 3)
    pixels = grid.swapaxes(1, 2).reshape(size, size, 3)
    return Image.fromarray(pixels).resize(image.size)


def drawn(color: str, shape: str) -> Image.Image:
    image = Image.new("RGB", (DRAWN_SIDE, DRAWN_SIDE), "white")
    circle = (DRAWN_SIDE // 2, DRAWN_SIDE // 2, DRAWN_SIDE // 3)
    ImageDraw.Draw(image).regular_polygon(circle, DRAWN_SHAPES[shape], fill=DRAWN_COLORS[color])
    return image


def drawn_text(color: str, shape: str) -> str:
    return f"a {color} {shape}"


def random_drawings(generator: np.random.Generator) -> list[tuple[str, str]]:
    """Return three drawings that differ in color and shape."""
    colors = generator.permutation(list(DRAWN_COLORS)).tolist()
    shapes = generator.permutation(list(DRAWN_SHAPES)).tolist()
    return list(zip(colors, shapes, strict=True))
