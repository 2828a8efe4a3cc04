"""Decode plain JPEG files faster than Pillow, to equal pixels.

Pillow and simplejpeg use the same decoder, libjpeg-turbo. Pillow writes 4 bytes a pixel, which
numpy copies while no other thread of Python can run; simplejpeg writes into an array.
"""

import struct
from pathlib import Path

import numpy as np
import simplejpeg

SUFFIXES = (".jpg", ".jpeg")
START = b"\xff\xd8\xff"
# Frames of 8 or 12 bits: baseline, extended, progressive.
FRAMES = frozenset({0xC0, 0xC1, 0xC2})
# Tables, restart interval, JFIF, Adobe's color transform, comment. Others may have an orientation
# or a color profile.
PLAIN_SEGMENTS = frozenset({0xC4, 0xDB, 0xDD, 0xE0, 0xEE, 0xFE})
# Of JFIF and Adobe segments; Pillow refuses shorter ones, which libjpeg accepts.
SHORTEST = {0xE0: 9, 0xEE: 9}
SCAN = 0xDA
# A file without end is not read into memory; the largest image of 8 bits is smaller.
MOST_BYTES = 1 << 28


def read_plain(file: Path) -> bytes | None:
    """Return the bytes of a JPEG file, None for other files, pipes and folders; raises OSError."""
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        return None
    with open(file, "rb", buffering=0) as opened:
        start = opened.read(len(START))
        return start + opened.read() if start == START else None


def plain_size(data: bytes) -> tuple[int, int] | None:
    """Return height and width of a JPEG that looks the same in every viewer; None for others.

    A JPEG is plain if it has one or three channels of 8 bits, and no segment that could turn it or
    change its colors.
    """
    size = None
    place = 2  # after the marker of the start
    try:
        while True:
            begin, marker, length = struct.unpack_from(">BBH", data, place)
            if begin != 0xFF:
                return None
            if marker == SCAN:
                return size
            if marker in FRAMES:
                bits, height, width, channels = struct.unpack_from(">BHHB", data, place + 4)
                is_repeated = size is not None  # so that the size is that of the decoder
                if bits != 8 or channels not in (1, 3) or is_repeated:
                    return None
                size = height, width
            elif marker not in PLAIN_SEGMENTS or length < SHORTEST.get(marker, 0):
                return None
            place += 2 + length
    except struct.error:  # the file ends before the scan
        return None


def decode(data: bytes) -> np.ndarray | None:
    """Return the pixels of a plain JPEG, (height, width, 3) bytes; None for a damaged file, also
    for one that libjpeg decodes with a warning.
    """
    try:
        # With Pillow's settings: the exact transform, and smooth upsampling of colors.
        return simplejpeg.decode_jpeg(data, "RGB", fastdct=False, fastupsample=False)
    except ValueError:
        return None
