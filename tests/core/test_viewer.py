"""What is read from an image file is what a browser shows, which is independent of this code and of
Pillow.
"""

import base64
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from compclip.core.reading.pictures import keep_as_shown, read_rgb
from tests.core.picture_files import (
    EXCHANGED,
    FIELDS,
    LINEAR_GRAY,
    SRGB,
    cmyk_profile,
    png,
    png16,
    rgb_profile,
    saved,
    turned,
    with_chunks,
)

pytestmark = pytest.mark.slow
# Decoders and color converters round differently.
ROUNDING = 2
PAGE = (
    '<body style="margin: 0; background: {}"><img style="display: block; image-rendering: '
    'pixelated" src="{}">'
)
DECODE = (
    "async () => { const i = document.images[0]; await i.decode(); return [i.naturalWidth, "
    "i.naturalHeight]; }"
)


def files() -> dict[str, bytes]:
    row, column = np.mgrid[0:40, 0:60]
    ramps = Image.fromarray(
        np.stack([4 * column, 6 * row, 255 - 3 * column - row], -1).astype(np.uint8)
    )
    clear = ramps.convert("RGBA")
    clear.putalpha(Image.fromarray((4 * column).astype(np.uint8)))
    gray, palette, ink = ramps.convert("L"), FIELDS.quantize(6), ramps.convert("CMYK")
    gray_clear = gray.copy()
    gray_clear.putalpha(clear.getchannel("A"))
    deep = (ramps.convert("L"), np.asarray(ramps).astype(int) * 257 + column[..., None])
    several: dict[str, Any] = {"save_all": True, "append_images": [ramps], "duration": 60_000}
    half = bytes([0x3A, 0x5F, 0x03] * 5)
    made = {
        f"turned {n}.{kind}": turned(n, kind) for n in range(10) for kind in ("jpeg", "png", "avif")
    }
    made |= {f"clear.{kind}": saved(clear, kind) for kind in ("png", "webp")}
    made |= {
        f"icc.{kind}": saved(ramps, kind, icc_profile=EXCHANGED) for kind in ("jpeg", "png", "webp")
    }
    made |= {
        f"linear.{kind}": saved(ramps, kind, icc_profile=rgb_profile("rgb", 1))
        for kind in ("jpeg", "png")
    }
    made |= {
        f"gray icc.{kind}": saved(gray, kind, icc_profile=LINEAR_GRAY) for kind in ("jpeg", "png")
    }
    made |= {f"sRGB.{kind}": saved(ramps, kind, icc_profile=SRGB) for kind in ("jpeg", "png")}
    made |= {
        f"broken icc.{kind}": saved(ramps, kind, icc_profile=b"no" * 99) for kind in ("jpeg", "png")
    }
    return made | {
        "gray of RGB.jpeg": saved(gray, "JPEG", icc_profile=EXCHANGED),
        "RGB of gray.png": saved(ramps, "PNG", icc_profile=LINEAR_GRAY),
        "clear icc.png": saved(clear, "PNG", icc_profile=EXCHANGED),
        "gray clear.png": saved(gray_clear, "PNG"),
        "gray clear icc.png": saved(gray_clear, "PNG", icc_profile=LINEAR_GRAY),
        "turned icc.png": turned(6, "PNG", icc_profile=EXCHANGED),
        "turned gray.jpeg": turned(6, "JPEG", gray),
        "turned CMYK.jpeg": turned(7, "JPEG", ink),
        "CMYK.jpeg": saved(ink, "JPEG"),
        "CMYK icc.jpeg": saved(
            ink, "JPEG", icc_profile=cmyk_profile(lambda c, m, y, k: (100 - 50 * c - 9 * k, 0, 0))
        ),
        "CMYK of RGB.jpeg": saved(ink, "JPEG", icc_profile=EXCHANGED),
        "palette.png": saved(palette, "PNG"),
        "palette clear.png": saved(palette, "PNG", transparency=bytes([0, 50, 100, 150, 200, 255])),
        "palette icc.png": saved(palette, "PNG", icc_profile=EXCHANGED, transparency=1),
        "palette clear.gif": saved(palette, "GIF", transparency=1),
        "color key.png": saved(FIELDS, "PNG", transparency=(200, 30, 60)),
        "gray key.png": saved(FIELDS.convert("L"), "PNG", transparency=128),
        "1 bit key.png": png([half] * 20, (120, 20), 1, 0, tRNS=b"\0\1"),
        "2 bit key.png": png([half] * 20, (60, 20), 2, 0, tRNS=b"\0\1"),
        "4 bit key.png": png([half] * 20, (30, 20), 4, 0, tRNS=b"\0\5"),
        "16 bit.png": png16(deep[1], 2),
        "16 bit gray.png": png16(deep[1][..., 0], 0),
        "16 bit key.png": png16(deep[1][..., 0], 0, tRNS=struct.pack(">H", deep[1][5, 5, 0])),
        "16 bit clear.png": png16(np.dstack([deep[1], 257 * 4 * column]), 6),
        "gamma of sRGB.png": with_chunks(saved(ramps, "PNG"), gAMA=struct.pack(">I", 45455)),
        "primaries alone.png": with_chunks(
            saved(ramps, "PNG"), cHRM=struct.pack(">8I", *range(10_000, 18_000, 1000))
        ),
        "cICP.png": with_chunks(
            saved(ramps, "PNG", icc_profile=EXCHANGED), cICP=bytes([1, 13, 0, 1])
        ),
        "animated.webp": saved(FIELDS, "WEBP", **several),
        "animated.png": saved(FIELDS, "PNG", **several),
        "animated.gif": saved(FIELDS, "GIF", **several),
        "hidden first.png": saved(
            ramps, "PNG", default_image=True, save_all=True, append_images=[FIELDS, ramps]
        ),
        "preview.jpeg": saved(
            FIELDS, "MPO", save_all=True, append_images=[ramps], exif=Image.Exif()
        ),
        "plain.bmp": saved(ramps, "BMP"),
    }


@pytest.fixture(scope="module")
def show(browser: Any) -> Callable[[bytes, str, str], np.ndarray]:
    """Return the pixels of an image (height, width, 3) in headless Chromium, on a background."""
    page = browser.new_page()

    def pixels(raw: bytes, kind: str, background: str) -> np.ndarray:
        address = f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"
        page.set_content(PAGE.format(background, address))
        width, height = page.evaluate(DECODE)
        shot = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height})
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    return pixels


@pytest.mark.parametrize("name", files())
def test_a_browser_shows_the_same(show: Callable[..., np.ndarray], name: str) -> None:
    raw = files()[name]
    seen = show(raw, name.rpartition(".")[2], "white")
    shown = np.asarray(read_rgb(io.BytesIO(raw))).astype(int)
    assert shown.shape == seen.shape
    assert abs(shown - seen).max() <= ROUNDING


@pytest.mark.parametrize("name", [*files(), "turned.webp", "turned.tiff"])
def test_a_dark_page_shows_a_kept_image_as_the_judge_sees_it(
    tmp_path: Path, show: Callable[..., np.ndarray], name: str
) -> None:
    further = {f"turned.{kind}": turned(6, kind) for kind in ("webp", "tiff")}
    raw = (files() | further)[name]
    (tmp_path / name).write_bytes(raw)
    kept, _, _ = keep_as_shown(tmp_path / name, name, {})
    seen = show(kept.read_bytes(), kept.suffix[1:], "black")
    np.testing.assert_allclose(seen, np.asarray(read_rgb(io.BytesIO(raw))), rtol=0, atol=ROUNDING)
