"""Decode image files, with the pixels that people see.

A viewer of images turns a photograph by its EXIF orientation, shows the page through transparent
pixels, and converts colors to those of the screen. Here, the page is white and the screen sRGB.
Chromium is the reference, with two exceptions: the orientation of WebP files counts, as in desktop
viewers, and an animation is its first frame.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from PIL import ExifTags, Image, ImageFile, ImageOps, UnidentifiedImageError

from compclip.core import limits
from compclip.core.errors import memory_for
from compclip.core.reading import colors, jpeg

# Pillow reads more formats, some by running other programs (EPS).
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF", "TIFF", "JPEG2000", "PPM")
NamesByKind = dict[str, list[str]]  # of images or captions, by what was changed in them or is wrong
SHOWN_BY_BROWSERS = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "AVIF")


class BrokenImage(Exception):
    """The file is not a readable image; the message, which goes into artifacts, says why."""


def _within_limits(width: int, height: int) -> bool:
    is_narrow = max(width, height) > limits.ASPECT * min(width, height)
    return width * height <= limits.PIXELS and not is_narrow


@contextmanager
def _opened(file: Path | IO[bytes]) -> Iterator[ImageFile.ImageFile]:
    """Open an image; raises BrokenImage, also for what is done with it, instead of Pillow's
    exceptions.
    """
    with memory_for(file):
        try:
            with Image.open(file, formats=FORMATS) as image:
                # Pillow would clip these values to 255.
                if image.mode in ("I", "F"):
                    raise BrokenImage("32 bits per channel; convert it to 8 bits")
                # Pillow does so itself, unless its user lifts its limit.
                if image.width * image.height > limits.PIXELS:
                    raise Image.DecompressionBombError
                if not _within_limits(*image.size):
                    raise BrokenImage(
                        limits.over("ASPECT", f"{image.width} by {image.height} pixels, a ratio")
                    )
                yield image
        except (FileNotFoundError, MemoryError, BrokenImage):
            raise
        except UnidentifiedImageError as error:
            raise BrokenImage("no image of a known format") from error
        except Image.DecompressionBombError as error:
            raise BrokenImage(limits.over("PIXELS", "too many pixels")) from error
        except Exception as error:  # Pillow's decoders raise many types for damaged files
            # The message goes into artifacts, so it does not name the folder.
            name = getattr(file, "name", "the file")
            raise BrokenImage(
                " ".join(str(error).replace(str(file), name).split())[:200]
            ) from error


def _orientation(image: Image.Image) -> int:
    """Return the orientation that EXIF states, 1 to 8."""
    # Browsers ignore that of XMP, which Pillow takes if EXIF states none; opening a JPEG may have
    # done so.
    for name in ("xmp", "XML:com.adobe.xmp"):
        image.info.pop(name, None)
    image._exif = None
    try:
        # Not the method of PNG, which decodes.
        stated = Image.Image.getexif(image).get(ExifTags.Base.Orientation, 1)
    except Exception:  # Pillow raises many types for damaged EXIF, which viewers ignore
        return 1
    return stated if stated in range(1, 9) else 1


def _decode(image: Image.Image, rawmode: str, mode: str) -> Image.Image:
    """Return an image with 8 bits per channel, of ``mode``, with an alpha channel if it may be
    transparent.
    """
    clear = image.info.get("transparency")
    if image.mode.startswith("I;16"):
        values = np.asarray(image)
        # The upper 8 bits: Pillow would clip values to 255.
        gray = Image.fromarray((values >> 8).astype(np.uint8))
        if clear is not None:
            gray.putalpha(Image.fromarray(values != clear).convert("L"))
        return gray
    if rawmode in ("L;2", "L;4") and clear is not None:
        # Pillow scales gray values to 8 bits, but not the one that is transparent.
        image.info["transparency"] = clear * 255 // (2 ** int(rawmode[2]) - 1)
    return image.convert(f"{mode}A" if image.has_transparency_data else mode)


def _shown(image: ImageFile.ImageFile) -> tuple[Image.Image, list[str]]:
    """Return an opened image as people see it, in RGB, and the names of what differs in its
    file.
    """
    orientation = _orientation(image)
    rawmode = "".join(str(tile.args) for tile in image.tile[:1])
    if "RGB;16" in rawmode and "transparency" in image.info:
        raise BrokenImage("16 bits per channel with a transparent color; give it an alpha channel")
    if image.info.get("default_image"):
        image.seek(1)  # frame 0 is for viewers without animation
    is_gray = image.mode in ("1", "L", "LA") or image.mode.startswith("I;16") or "LA;16" in rawmode
    mode = "L" if is_gray else "CMYK" if image.mode == "CMYK" else "RGB"
    to_srgb = colors.conversion(image, mode)
    differs = {
        "rotated": orientation > 1,
        "other_colors": to_srgb is not None or mode == "CMYK",
        "sixteen_bit": ";16" in rawmode + image.mode,
        "animated": image.format != "MPO" and getattr(image, "is_animated", False),
        "other_format": image.format not in SHOWN_BY_BROWSERS,
    }
    image.load()
    # Pillow would write the turned image's EXIF, and fail where that is damaged.
    image.info.pop("exif", None)
    upright = ImageOps.exif_transpose(image) if orientation > 1 else image
    decoded = _decode(upright, rawmode, mode)
    shown = to_srgb(decoded) if to_srgb else decoded
    # Not converted again, because that would copy the pixels.
    shown = shown if shown.mode == "RGB" else shown.convert("RGB")
    if decoded.mode.endswith("A"):
        opacity = decoded.getchannel("A")
        differs["transparent"] = opacity.getextrema() != (255, 255)
        shown = Image.composite(shown, Image.new("RGB", shown.size, "white"), opacity)
    return shown, [name for name, value in differs.items() if value]


def check_image(file: Path | IO[bytes]) -> tuple[tuple[int, int], int, list[str]]:
    """Check that an image can be decoded to its end.

    Returns:
        Width and height in pixels, as shown; the orientation that EXIF states, 1 to 8; names of
        what differs between the pixels in the file and what people see.

    Raises:
        BrokenImage: the file is not a readable image.
    """
    with _opened(file) as image:
        image.verify()
    with _opened(file) as image:
        size = image.size
        orientation = _orientation(image)
        # verify() accepts a truncated JPEG; decoding it at an eighth of its size fails.
        image.draft("RGB", (max(1, size[0] // 8), max(1, size[1] // 8)))
        _, differences = _shown(image)
        # Pillow turns a TIFF itself.
        if orientation > 4 and image.format != "TIFF":
            size = size[::-1]
    return size, orientation, differences


def image_size(file: Path | IO[bytes]) -> tuple[int, int]:
    """Return width and height in pixels, as shown; raises BrokenImage unless the file can be
    decoded to its end.
    """
    return check_image(file)[0]


def read_rgb(file: Path | IO[bytes]) -> Image.Image:
    """Return an image as people see it, in sRGB with 8 bits per channel. Raises BrokenImage."""
    with _opened(file) as image:
        shown, _ = _shown(image)
    # Pillow would save a profile and a transparent color again, which no longer apply.
    shown.info.clear()
    return shown


def read_pixels(file: Path | IO[bytes]) -> np.ndarray:
    """Return the pixels of ``read_rgb``, (height, width, 3) bytes, faster for plain JPEG files.
    Raises BrokenImage.
    """
    with memory_for(file):
        pixels = _plain_pixels(file) if isinstance(file, Path) else None
        # Pillow reads all other files, and says what is wrong with damaged ones.
        return np.array(read_rgb(file)) if pixels is None else pixels


def _plain_pixels(file: Path) -> np.ndarray | None:
    """Return the pixels of a plain JPEG file; None for other, damaged and too large ones."""
    if file.suffix.lower() not in jpeg.SUFFIXES:
        return None
    try:
        data = jpeg.read_plain(file)
    except OSError:
        return None
    size = None if data is None else jpeg.plain_size(data)
    if data is None or size is None or not _within_limits(*size):
        return None
    return jpeg.decode(data)


def keep_as_shown(
    file: Path, name: str, differing: NamesByKind
) -> tuple[Path, tuple[int, int], int]:
    """Check an image file, and replace it by a PNG if other programs might not show it as
    ``read_rgb`` does.

    Args:
        file: the image.
        name: what is added to the lists of ``differing``, by the names of what differs in the file.
        differing: changed.

    Returns:
        The file, its size as shown, and the orientation that EXIF stated (see ``check_image``).

    Raises:
        BrokenImage: the file is not a readable image.
    """
    size, orientation, differences = check_image(file)
    for difference in differences:
        differing.setdefault(difference, []).append(name)
    if differences:
        shown = read_rgb(file)
        file.unlink()
        file = file if file.suffix == ".png" else file.with_name(f"{file.name}.png")
        shown.save(file, "PNG", compress_level=1)
    return file, size, orientation
