"""Image files of all kinds, written byte by byte where Pillow does not write them."""

import io
import itertools
import struct
import zlib
from collections.abc import Callable, Iterable

import numpy as np
from PIL import Image, ImageCms

ORIENTATION = 0x0112
COLORS = np.array(
    [[[40, 80, 160], [200, 30, 60], [120, 200, 90]], [[128, 128, 128], [255, 0, 0], [10, 20, 30]]]
)
# Six fields of 20 by 20 pixels in different colors: no orientation equals another.
FIELDS = Image.fromarray(COLORS.astype(np.uint8).repeat(20, 0).repeat(20, 1))


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    lossless = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    image.save(buffer, kind, **{**lossless, **options})
    return buffer.getvalue()


def turned(
    orientation: int, kind: str = "JPEG", image: Image.Image = FIELDS, **options: object
) -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return saved(image, kind, exif=exif, **options)


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(
    rows: Iterable[bytes], size: tuple[int, int], depth: int, color: int, **chunks: bytes
) -> bytes:
    """Return a PNG of rows of packed pixels; ``color`` is its color type."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, color, 0, 0, 0))
    further = b"".join(chunk(name.encode(), content) for name, content in chunks.items())
    pixels = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return b"\x89PNG\r\n\x1a\n" + header + further + pixels + chunk(b"IEND", b"")


def png16(values: np.ndarray, color: int, **chunks: bytes) -> bytes:
    """Return a PNG of 16 bits per channel."""
    height, width = values.shape[:2]
    return png(
        (row.astype(">u2").tobytes() for row in values), (width, height), 16, color, **chunks
    )


def with_chunks(raw: bytes, **chunks: bytes) -> bytes:
    """Return a PNG with further chunks after its header."""
    return (
        raw[:33]
        + b"".join(chunk(name.encode(), content) for name, content in chunks.items())
        + raw[33:]
    )


def fixed(*values: float) -> bytes:
    return b"".join(struct.pack(">i", round(65536 * value)) for value in values)


def profile(space: bytes, tags: dict[bytes, bytes], pcs: bytes = b"XYZ ") -> bytes:
    """Return an ICC profile of version 2."""
    name = b"desc" + bytes(4) + struct.pack(">I", 2) + b"x\0" + bytes(78)
    tags = {
        b"desc": name,
        b"cprt": b"text" + bytes(4) + b"none",
        b"wtpt": b"XYZ \0\0\0\0" + fixed(0.9642, 1, 0.8249),
        **tags,
    }
    start = 132 + 12 * len(tags)
    table, data = struct.pack(">I", len(tags)), b""
    for signature, content in tags.items():
        table += signature + struct.pack(">II", start + len(data), len(content))
        data += content + bytes(-len(content) % 4)
    header = struct.pack(">I4sI4s4s4s", start + len(data), b"", 0x02100000, b"mntr", space, pcs)
    header += bytes(12) + b"acsp" + bytes(28) + fixed(0.9642, 1, 0.8249) + bytes(48)
    return header + table + data


def gamma_curve(gamma: float) -> bytes:
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(256 * gamma))


def rgb_profile(primaries: str, gamma: float) -> bytes:
    """Return a profile whose channels have sRGB's primaries in the order of ``primaries``, for
    example ``grb``.
    """
    xyz = {
        "r": (0.4360, 0.2225, 0.0139),
        "g": (0.3851, 0.7169, 0.0971),
        "b": (0.1431, 0.0606, 0.7139),
    }
    points = {
        f"{name}XYZ".encode(): b"XYZ \0\0\0\0" + fixed(*xyz[of])
        for name, of in zip("rgb", primaries, strict=True)
    }
    return profile(b"RGB ", points | {f"{name}TRC".encode(): gamma_curve(gamma) for name in "rgb"})


def cmyk_profile(lab: Callable[..., tuple[float, float, float]]) -> bytes:
    """Return a profile by a function from C, M, Y, K (0 to 1) to Lab, which is taken at the ends of
    each channel.
    """
    corners = [lab(*inks) for inks in itertools.product((0, 1), repeat=4)]
    cells = b"".join(
        bytes([round(2.55 * light), round(128 + a), round(128 + b)]) for light, a, b in corners
    )
    ramp, matrix = bytes(range(256)), fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    table = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + matrix + 4 * ramp + cells + 3 * ramp
    return profile(b"CMYK", {b"A2B0": table}, pcs=b"Lab ")


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
LINEAR_GRAY = profile(b"GRAY", {b"kTRC": gamma_curve(1)})
EXCHANGED = rgb_profile("grb", 2.2)
