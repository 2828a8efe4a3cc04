"""An image is read as people see it or refused, whatever its format."""

import ast
import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, PngImagePlugin

from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.reading.pictures import (
    BrokenImage,
    check_image,
    image_size,
    keep_as_shown,
    read_rgb,
)
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

RAMP = np.arange(256, dtype=np.uint8).repeat(4).reshape(32, 32)


def test_sixteen_bits_are_scaled_and_color_spaces_and_animations_read(tmp_path: Path) -> None:
    raw = saved(Image.fromarray(RAMP.astype(np.uint16) * 257), "PNG")
    assert image_size(io.BytesIO(raw)) == (32, 32)
    assert (np.asarray(read_rgb(io.BytesIO(raw))) == RAMP[..., None]).all()
    (tmp_path / "x.png").write_bytes(raw)
    assert (
        Preprocess({**PREPROCESS, "size": 32}, None).read([(tmp_path / "x.png", None)])
        == RAMP[..., None]
    ).all()
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


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no image of a known format"),
        (b"\x00\xff" * 50, "no image of a known format"),
        (
            png([bytes(99)], (20_000, 20_000), 8, 2),
            r"too many pixels, more than the limit of 178,956,970 \(core/limits.py: PIXELS\)",
        ),
        (
            saved(Image.new("L", (3, 1501)), "PNG"),
            "3 by 1501 pixels, a ratio, more than the limit of 500 ",
        ),
        (
            saved(Image.fromarray(RAMP.astype(np.int32)), "TIFF"),
            "32 bits per channel; convert it to 8 bits",
        ),
        (saved(Image.fromarray(RAMP.astype(np.float32)), "TIFF"), "32 bits per channel"),
        *((saved(Image.fromarray(RAMP), kind)[:-40], "(?i)truncated") for kind in ("PNG", "JPEG")),
        (
            saved(Image.fromarray(RAMP), "WEBP", lossless=False)[:-40],
            "could not create decoder object",
        ),
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


def pixels(raw: bytes) -> np.ndarray:
    return np.asarray(read_rgb(io.BytesIO(raw)))


def differences(raw: bytes) -> list[str]:
    return check_image(io.BytesIO(raw))[2]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_every_orientation_is_shown_upright(kind: str, mode: str) -> None:
    stored = FIELDS.convert(mode)
    array = np.asarray(Image.open(io.BytesIO(saved(stored, kind))).convert("RGB"))
    # The first row and the first column of the stored pixels are, by EXIF: top left, top right,
    # bottom right, …
    wanted = [array, array[:, ::-1], array[::-1, ::-1], array[::-1]]
    wanted += [
        view.swapaxes(0, 1) for view in (array, array[::-1], array[::-1, ::-1], array[:, ::-1])
    ]
    for orientation, view in enumerate(wanted, 1):
        raw = turned(orientation, kind, stored)
        np.testing.assert_array_equal(pixels(raw), view)
        assert image_size(io.BytesIO(raw)) == (view.shape[1], view.shape[0])
        assert ("rotated" in differences(raw)) == (orientation > 1)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_the_orientation_of_xmp_is_ignored(kind: str) -> None:
    xmp = b'<x tiff:Orientation="6"/>'
    other = Image.Exif()
    other[ExifTags.Base.Software] = "a camera"
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", xmp.decode())
    more = {"pnginfo": text} if kind == "PNG" else {"xmp": xmp}
    image = Image.new("RGB", (60, 40))
    for exif in ({}, {"exif": other}):
        raw = saved(image, kind, **more, **exif)
        assert pixels(raw).shape == (40, 60, 3) and not differences(raw)
    other[ExifTags.Base.Orientation] = 6
    assert pixels(saved(image, kind, **more, exif=other)).shape == (60, 40, 3)


@pytest.mark.parametrize("orientation", [0, 9, 300])
def test_an_unknown_orientation_is_ignored(orientation: int) -> None:
    assert (pixels(turned(orientation)) == pixels(saved(FIELDS, "JPEG"))).all() and not differences(
        turned(orientation)
    )


def test_damaged_exif_is_ignored() -> None:
    raw = saved(FIELDS, "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert (pixels(raw) == pixels(saved(FIELDS, "JPEG"))).all() and not differences(raw)


BLACK, CLEAR, GREEN = (0, 0, 0), (255, 255, 255), (0, 255, 0)
HALF = (128, 255, 128)  # green of opacity 127 on white
PALETTE = bytes([0, 255, 0, 0, 0, 0])


def modes() -> dict[str, Image.Image]:
    """Two pixels, the first clear over a hidden color, the second opaque black."""
    rgba = Image.fromarray(np.array([[[0, 255, 0, 0], [0, 0, 0, 255]]], np.uint8))
    gray = Image.fromarray(np.array([[[90, 0], [0, 255]]], np.uint8), "LA")
    return {"rgba": rgba, "la": gray}


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (saved(modes()["rgba"], "PNG"), [CLEAR, BLACK]),
        (saved(modes()["rgba"], "WEBP", exact=True), [CLEAR, BLACK]),
        (saved(modes()["rgba"], "TIFF"), [CLEAR, BLACK]),
        (saved(modes()["la"], "PNG"), [CLEAR, BLACK]),
        (png([bytes([0, 255, 0, 127, 0, 255, 0, 255])], (2, 1), 8, 6), [HALF, GREEN]),
        (png([b"\0\1"], (2, 1), 8, 3, PLTE=PALETTE, tRNS=b"\0"), [CLEAR, BLACK]),
        (png([b"\0\1"], (2, 1), 8, 3, PLTE=PALETTE, tRNS=b"\x7f\xff"), [HALF, BLACK]),
        (png([b"\x40"], (2, 1), 1, 3, PLTE=PALETTE, tRNS=b"\0"), [CLEAR, BLACK]),
        (
            png([bytes([0, 255, 0, 0, 0, 0])], (2, 1), 8, 2, tRNS=bytes([0, 0, 0, 255, 0, 0])),
            [CLEAR, BLACK],
        ),
        (png([b"\x5a\0"], (2, 1), 8, 0, tRNS=b"\0\x5a"), [CLEAR, BLACK]),
        (png([b"\x80"], (2, 1), 1, 0, tRNS=b"\0\1"), [CLEAR, BLACK]),
        (png([b"\x80"], (2, 1), 1, 0, tRNS=b"\0\0"), [CLEAR, CLEAR]),
        (png([b"\x60"], (2, 1), 2, 0, tRNS=b"\0\1"), [CLEAR, (170, 170, 170)]),
        (png([b"\x50"], (2, 1), 4, 0, tRNS=b"\0\5"), [CLEAR, BLACK]),
        # 300 and 301 have equal upper bytes.
        (png16(np.array([[300, 301]]), 0, tRNS=b"\1\x2c"), [CLEAR, (1, 1, 1)]),
        (png16(np.array([[[65535, 0], [0, 65535]]]), 4), [CLEAR, BLACK]),
    ],
)
def test_transparency_shows_white(raw: bytes, wanted: list[tuple[int, int, int]]) -> None:
    assert pixels(raw)[0].tolist() == [list(color) for color in wanted]
    assert "transparent" in differences(raw)


def test_a_transparent_gif() -> None:
    image = Image.fromarray(np.array([[0, 1]], np.uint8), "P")
    image.putpalette(PALETTE)
    raw = saved(image, "GIF", transparency=0)
    assert pixels(raw)[0].tolist() == [[255] * 3, [0] * 3] and differences(raw) == ["transparent"]


def test_opaque_images_are_no_change() -> None:
    opaque, palette = FIELDS.convert("RGBA"), FIELDS.quantize(6)
    for raw in (
        *(saved(opaque, kind) for kind in ("PNG", "WEBP")),
        saved(palette, "PNG"),
        saved(palette, "PNG", transparency=b"\xff" * 6),
        saved(palette, "GIF"),
        saved(FIELDS, "PNG", transparency=(1, 2, 3)),
        saved(FIELDS, "BMP"),
    ):
        np.testing.assert_array_equal(pixels(raw), np.asarray(FIELDS))
        assert not differences(raw)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_a_profile_is_converted(kind: str) -> None:
    """The profile says that the first channel is green and the second is red."""
    color = Image.new("RGB", (16, 16), (0, 200, 0))
    pixel = pixels(saved(color, kind, icc_profile=EXCHANGED))[8, 8].astype(int)
    assert abs(pixel - [201, 0, 0]).max() <= 2
    assert "other_colors" in differences(saved(color, kind, icc_profile=EXCHANGED))


def test_a_profile_is_converted_below_transparency_and_turned() -> None:
    image = Image.new("RGBA", (3, 2), (0, 200, 0, 255))
    image.putpixel((0, 0), (0, 200, 0, 0))
    raw = turned(6, "PNG", image, icc_profile=EXCHANGED)
    shown = pixels(raw)
    assert (
        shown.shape == (3, 2, 3)
        and shown[0, 1].tolist() == [255] * 3
        and shown[2, 0, 0] > 190 > shown[2, 0, 1]
    )
    assert differences(raw) == ["rotated", "other_colors", "transparent"]


@pytest.mark.parametrize("space", ["gray", "rgb"])
def test_gray_with_a_profile(space: str) -> None:
    """Linear 128 is sRGB's 188."""
    by = LINEAR_GRAY if space == "gray" else rgb_profile("rgb", 1)
    for kind in ("PNG", "JPEG"):
        raw = saved(Image.new("L", (16, 16), 128), kind, icc_profile=by)
        assert abs(pixels(raw)[8, 8].astype(int) - 188).max() <= 1 and differences(raw) == [
            "other_colors"
        ]
    clear = Image.merge("LA", [Image.new("L", (2, 2), 128), Image.new("L", (2, 2), 0)])
    assert (pixels(saved(clear, "PNG", icc_profile=by)) == 255).all()


def test_cmyk_by_its_profile() -> None:
    """The profile's cyan is a gray; without it, cyan is cyan."""
    cyan = Image.new("CMYK", (16, 16), (255, 0, 0, 0))
    assert pixels(saved(cyan, "JPEG"))[8, 8].tolist() == [0, 255, 255]
    by = cmyk_profile(lambda c, m, y, k: (100 - 46.4 * c, 0, 0))
    raw = saved(cyan, "JPEG", icc_profile=by)
    assert np.ptp(pixels(raw)[8, 8].astype(int)) <= 2 and abs(int(pixels(raw)[8, 8, 0]) - 128) <= 3
    assert differences(raw) == ["other_colors"]


@pytest.mark.parametrize(
    "profile",
    [
        SRGB,
        b"nonsense" * 20,
        EXCHANGED[:200],
        EXCHANGED[:16] + b"\xff" + EXCHANGED[17:],
        LINEAR_GRAY,
        b"",
    ],
)
def test_profiles_that_change_nothing(profile: bytes) -> None:
    """sRGB's own, damaged ones, and one for other images than these."""
    for kind in ("PNG", "JPEG"):
        raw = saved(FIELDS, kind, icc_profile=profile)
        assert (pixels(raw) == pixels(saved(FIELDS, kind))).all() and not differences(raw)


def test_a_profile_that_is_nearly_srgb_changes_nothing() -> None:
    """As many cameras and programs write it, with a table of 1,024 values or other rounding."""
    near = bytearray(SRGB)
    start = near.find(b"XYZ ", 200)
    near[start + 11] ^= 3
    raw = saved(FIELDS, "PNG", icc_profile=bytes(near))
    assert (pixels(raw) == np.asarray(FIELDS)).all() and not differences(raw)


PLAIN = saved(FIELDS, "PNG")
PRIMARIES = struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
OTHER_PRIMARIES = struct.pack(">8I", 31270, 32900, 30000, 60000, 64000, 33000, 15000, 6000)
GAMMA, LINEAR = struct.pack(">I", 45455), struct.pack(">I", 100000)


@pytest.mark.parametrize(
    "chunks",
    [
        {"gAMA": GAMMA},
        {"gAMA": GAMMA, "cHRM": PRIMARIES},
        {"cHRM": OTHER_PRIMARIES},
        {"gAMA": LINEAR, "sRGB": b"\0"},
        {"cICP": bytes([1, 13, 0, 1])},
        {"cICP": bytes([1, 13, 0, 1]), "gAMA": LINEAR},
    ],
)
def test_chunks_that_state_srgb(chunks: dict[str, bytes]) -> None:
    raw = with_chunks(PLAIN, **chunks)
    assert (pixels(raw) == np.asarray(FIELDS)).all() and not differences(raw)


@pytest.mark.parametrize(
    "raw",
    [
        with_chunks(PLAIN, gAMA=LINEAR),
        with_chunks(PLAIN, gAMA=GAMMA, cHRM=OTHER_PRIMARIES),
        with_chunks(PLAIN, cICP=bytes([9, 16, 0, 1])),
        with_chunks(saved(FIELDS, "PNG", icc_profile=SRGB), cICP=bytes([12, 13, 0, 1])),
        png16(np.array([[[300, 300, 300], [301, 301, 301]]]), 2, tRNS=b"\1\x2c" * 3),
        saved(Image.new("RGB", (8, 8)), "EPS"),
        saved(Image.new("RGB", (8, 8)), "TGA"),
    ],
)
def test_what_cannot_be_shown_is_refused(raw: bytes) -> None:
    for read in (image_size, read_rgb):
        with pytest.raises(
            BrokenImage,
            match="convert it to sRGB|give it an alpha channel|no image of a known format",
        ):
            read(io.BytesIO(raw))


def test_the_first_frame_of_an_animation() -> None:
    red, blue, lime = (Image.new("RGB", (8, 8), color) for color in ("red", "blue", "lime"))
    several = {"save_all": True, "append_images": [red, blue]}
    for raw, first in (
        (saved(lime, "PNG", default_image=True, **several), (255, 0, 0)),
        (saved(lime, "PNG", **several), (0, 255, 0)),
        (saved(lime, "GIF", **several), (0, 255, 0)),
        (saved(lime, "WEBP", **several), (0, 255, 0)),
    ):
        assert pixels(raw)[4, 4].tolist() == list(first) and differences(raw) == ["animated"]
    # A photograph that contains further pictures, such as a preview.
    assert not differences(saved(red, "MPO", save_all=True, append_images=[blue]))


@pytest.mark.parametrize(
    ("name", "raw", "after"),
    [
        ("a.jpg", turned(6), "a.jpg.png"),
        ("a.png", saved(modes()["rgba"], "PNG"), "a.png"),
        ("a.webp", turned(3, "WEBP"), "a.webp.png"),
        ("a.tif", saved(FIELDS, "TIFF"), "a.tif.png"),
        ("a.jpg", saved(FIELDS.convert("CMYK"), "JPEG", icc_profile=EXCHANGED), "a.jpg.png"),
        ("a.png", turned(2, "PNG", transparency=(200, 30, 60), icc_profile=SRGB), "a.png"),
        ("a.png", saved(Image.fromarray(RAMP.astype(np.uint16) * 257), "PNG"), "a.png"),
    ],
)
def test_a_kept_image_is_the_same_for_every_program(
    tmp_path: Path, name: str, raw: bytes, after: str
) -> None:
    """Even for one that knows only pixels."""
    (tmp_path / name).write_bytes(raw)
    kept, _, _ = keep_as_shown(tmp_path / name, "a", {})
    assert [file.name for file in tmp_path.iterdir()] == [kept.name] == [after]
    assert not check_image(kept)[2] and not Image.open(kept).info
    np.testing.assert_array_equal(np.asarray(Image.open(kept).convert("RGB")), pixels(raw))


# Modules that open images themselves, with the reason.
OPENERS = {
    "compclip/core/reading/pictures.py": "reads images",
    "compclip/generate/generators/diffusers.py": "counts black images among the PNGs that it has "
    "just written",
}


def test_images_are_opened_in_one_module() -> None:
    """Any other might show people or judges other pixels."""
    files = [
        file
        for folder in ("compclip", "workflow_scripts", "examples")
        for file in (ROOT / folder).rglob("*.py")
    ]
    openers = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "Image.open",
                "PIL.Image.open",
                "imread",
            ):
                openers.add(file.relative_to(ROOT).as_posix())
    assert openers == set(OPENERS)


def test_a_palette_that_spells_the_name_of_a_chunk_is_a_palette() -> None:
    image = Image.fromarray(np.arange(4, dtype=np.uint8).reshape(2, 2), "P")
    image.putpalette(b"cICPgAMAcHRM")
    shown = read_rgb(io.BytesIO(saved(image, "PNG")))
    assert shown.tobytes() == b"cICPgAMAcHRM"
