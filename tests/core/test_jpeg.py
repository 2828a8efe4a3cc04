"""Plain JPEG files are decoded fast, to Pillow's pixels; all others by Pillow."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from compclip.core import limits
from compclip.core.reading import jpeg, pictures
from compclip.core.reading.pictures import BrokenImage, read_pixels, read_rgb
from tests.core.picture_files import EXCHANGED, saved, turned

DRAW = np.random.default_rng(0)
SCENE = np.asarray(
    Image.fromarray(DRAW.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((151, 97))
)
NOISE = DRAW.integers(0, 256, (61, 45, 3), dtype=np.uint8)


def by_pillow(file: Path) -> np.ndarray | str:
    """Return Pillow's pixels, or the fault."""
    try:
        return np.array(read_rgb(file))
    except BrokenImage as error:
        return str(error)


def by_us(file: Path) -> np.ndarray | str:
    try:
        return read_pixels(file)
    except BrokenImage as error:
        return str(error)


def is_fast(file: Path) -> bool:
    data = jpeg.read_plain(file)
    return data is not None and jpeg.plain_size(data) is not None


@pytest.mark.parametrize("image", [SCENE, NOISE], ids=["scene", "noise"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"quality": 5},
        {"quality": 100, "subsampling": "4:4:4"},
        {"subsampling": "4:2:2"},
        {"progressive": True},
        {"optimize": True, "comment": "a comment"},
        {"restart_marker_blocks": 3},
        {"keep_rgb": True},
        {"dpi": (300, 300)},
    ],
    ids=str,
)
def test_plain_files_have_pillows_pixels(
    tmp_path: Path, image: np.ndarray, mode: str, settings: dict[str, Any]
) -> None:
    file = tmp_path / "a.jpg"
    Image.fromarray(image).convert(mode).save(file, "JPEG", **settings)
    assert is_fast(file)
    # Pillow says the height and width first.
    assert jpeg.plain_size(file.read_bytes()) == image.shape[:2]
    np.testing.assert_array_equal(read_pixels(file), by_pillow(file))


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (17, 16), (8, 7), (3, 250)])
def test_every_size_is_decoded_whole(tmp_path: Path, size: tuple[int, int]) -> None:
    file = tmp_path / "a.jpg"
    Image.fromarray(SCENE).resize(size).save(file)
    assert is_fast(file)
    np.testing.assert_array_equal(read_pixels(file), by_pillow(file))


def test_pillow_decodes_what_is_turned_colored_or_no_plain_jpeg(tmp_path: Path) -> None:
    image = Image.fromarray(SCENE)
    files = {
        "turned.jpg": turned(6, image=image),
        "profile.jpg": saved(image, "JPEG", icc_profile=EXCHANGED),
        "cmyk.jpg": saved(image.convert("CMYK"), "JPEG"),
        "xmp.jpg": saved(image, "JPEG", xmp=b"<x:xmpmeta/>"),
        "several.jpg": saved(image, "MPO", save_all=True, append_images=[image]),
        "png.jpg": saved(image, "PNG"),
        "empty.jpg": b"",
    }
    for name, raw in files.items():
        file = tmp_path / name
        file.write_bytes(raw)
        assert not is_fast(file), name
        np.testing.assert_array_equal(by_us(file), by_pillow(file))
    upright = read_pixels(tmp_path / "turned.jpg")
    assert upright.shape == (151, 97, 3)


def test_limits_hold_for_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "line.jpg"
    Image.new("RGB", (3, 1501)).save(file)
    assert is_fast(file)
    with pytest.raises(BrokenImage, match="3 by 1501 pixels, a ratio"):
        read_pixels(file)
    Image.fromarray(SCENE).save(file)
    monkeypatch.setattr(limits, "PIXELS", 97 * 151 - 1)
    with pytest.raises(BrokenImage, match="too many pixels"):
        read_pixels(file)


def test_what_cannot_be_opened_is_refused_as_by_pillow(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_pixels(tmp_path / "missing.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "loop.jpg").symlink_to(tmp_path / "loop.jpg")
    (tmp_path / "file.jpg").write_bytes(b"")
    names = (
        "folder.jpg",
        "loop.jpg",
        "file.jpg",
        "file.jpg/a.jpg",
        f"{'long' * 80}.jpg",
        "a\0.jpg",
    )
    for name in names:
        fault = by_us(tmp_path / name)
        assert isinstance(fault, str) and fault == by_pillow(tmp_path / name)
        assert str(tmp_path) not in fault


@pytest.mark.parametrize("start", [b"\xff\xe0\x00\x08JFIF\x00\x01", b"\xff\xee\x00\x08Adobe\x00"])
def test_a_short_segment_is_refused_as_by_pillow(tmp_path: Path, start: bytes) -> None:
    content = saved(Image.fromarray(SCENE), "JPEG")
    file = tmp_path / "a.jpg"
    file.write_bytes(content[:2] + start + content[2:])
    assert not is_fast(file)
    assert by_us(file) == by_pillow(file) == "no image of a known format"


@pytest.mark.parametrize("settings", [{}, {"progressive": True}], ids=str)
def test_a_damaged_file_is_read_or_refused_as_by_pillow(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytearray(saved(Image.fromarray(SCENE), "JPEG", **settings))
    file = tmp_path / "a.jpg"
    faults = 0
    for _ in range(150):
        damaged = content.copy()
        for place in DRAW.integers(0, len(content), DRAW.integers(1, 4)):
            damaged[place] = DRAW.integers(256)
        end = DRAW.integers(2, len(content)) if DRAW.random() < 0.2 else len(content)
        file.write_bytes(damaged[:end])
        ours, pillows = by_us(file), by_pillow(file)
        np.testing.assert_array_equal(ours, pillows)
        faults += isinstance(ours, str)
    assert 5 < faults < 140
    # A file with bytes after its end is read fast, too.
    file.write_bytes(content + b"\x00" * 8)
    monkeypatch.setattr(pictures, "read_rgb", None)
    assert read_pixels(file).shape == (97, 151, 3)
