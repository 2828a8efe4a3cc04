"""The pixels of an image are those of open_clip and of Pillow."""

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from compclip.clip import pixels
from compclip.clip.vision import open_clip
from compclip.core import seeds
from compclip.core.errors import UserError
from compclip.dataset.sketch.draw import draw_pose, paint_scene, png
from compclip.dataset.sketch.world import Dice, draw_wild_scene

NOISE = np.random.default_rng(0).integers(0, 256, (90, 130, 3), dtype=np.uint8)


def preprocess(
    size: int | tuple[int, int], crop: float | None = None, **settings: Any
) -> pixels.Preprocess:
    return pixels.Preprocess({**pixels.PREPROCESS, "size": size, **settings}, crop)


def test_crop_by_hand_and_the_defaults_of_open_clip() -> None:
    # The longer side is 40: 30 pixels to each side of the center (60, 50), clipped at the bottom
    # (70).
    assert pixels.crop_around((40, 40, 40, 20), (200, 70), 0.75) == (30, 20, 90, 70)
    assert pixels.crop_around((0, 0, 10, 10), (20, 20), 0.75) == (0, 0, 12, 12)
    assert list(asdict(open_clip().transform.PreprocessCfg()).items()) == list(
        pixels.PREPROCESS.items()
    )


@pytest.mark.parametrize(("size", "mode"), [(64, "shortest"), ((40, 64), "squash")])
def test_pixels_are_open_clips(tmp_path: Path, size: int | tuple[int, int], mode: str) -> None:
    Image.fromarray(NOISE).save(tmp_path / "noise.png")
    ours, library = preprocess(size, resize_mode=mode), open_clip().transform
    theirs = library.image_transform_v2(library.PreprocessCfg(**ours.cfg), is_train=False)(
        Image.open(tmp_path / "noise.png")
    )
    read = ours.read([(tmp_path / "noise.png", None)])
    assert read.shape == (1, *ours.size, 3) and read.dtype == np.uint8
    std = torch.tensor(ours.cfg["std"]).view(3, 1, 1)
    off = (ours.floats(read, torch.device("cpu"))[0] - theirs).abs() * 255 * std
    assert off.max() < 1.001 and (off > 0.01).float().mean() < 0.03


def test_pixels_of_drawn_birds_are_open_clips() -> None:
    """open_clip resizes a file in its own mode, so a palette image would differ by up to 150
    levels.
    """
    library, ours = open_clip().transform, preprocess(48)
    transform = library.image_transform_v2(library.PreprocessCfg(**ours.cfg), is_train=False)
    for number in range(20):
        dice = Dice(seeds.rng(0, "test", number))
        file = io.BytesIO(png(paint_scene(draw_wild_scene(dice), draw_pose(dice))))
        theirs = library.Compose(transform.transforms[:-2])(Image.open(file))
        (read,) = ours.read([(file, None)])
        assert np.abs(read.astype(int) - np.asarray(theirs.convert("RGB"))).max() <= 1


@pytest.mark.parametrize("by", ["bicubic", "bilinear"])
@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
def test_every_size_is_fitted_as_by_open_clip(mode: str, by: str) -> None:
    """To the byte, except for the fast path, whose rounding differs; noise has the largest
    differences.
    """
    library, draw = open_clip().transform, np.random.default_rng(0)
    for size in (32, 31, (24, 40)):
        ours = preprocess(size, resize_mode=mode, interpolation=by)
        transform = library.image_transform_v2(library.PreprocessCfg(**ours.cfg), is_train=False)
        for height, width in draw.integers(8, 200, (20, 2)).tolist():
            image = draw.integers(0, 256, (height, width, 3), dtype=np.uint8)
            theirs = library.Compose(transform.transforms[:-2])(Image.fromarray(image))
            off = np.abs(ours._fit(image[None])[0].astype(int) - np.asarray(theirs))
            fast = mode == "shortest" and size in (32, 31)
            assert off.max() <= (2 if fast else 0) and off.mean() < 0.05, (size, height, width)


def test_images_read_together_are_read_as_each_alone(tmp_path: Path) -> None:
    items: list[pixels.Item] = []
    for i, (height, width) in enumerate([(30, 20), (20, 30), (16, 16)] * 2):
        items.append((tmp_path / f"{i}.png", (2.0, 3.0, 12.0, 9.0) if i % 4 == 0 else None))
        Image.fromarray(NOISE[i : i + height, :width]).save(items[-1][0])
    small = preprocess(16, 0.75)
    np.testing.assert_array_equal(
        small.read(items), np.concatenate([small.read([item]) for item in items])
    )
    assert small.read([]).shape == (0, 16, 16, 3)
    Image.new("RGB", (300, 1)).save(tmp_path / "line.png")
    with pytest.raises(
        UserError, match=r"line\.png: 300 x 1 pixels cannot be resized \(.*\); replace or remove it"
    ):
        preprocess(16, resize_mode="longest").read([(tmp_path / "line.png", None)])


@pytest.mark.parametrize("threads", [1, 3])
def test_images_read_ahead_come_in_order(tmp_path: Path, threads: int) -> None:
    items: list[pixels.Item] = []
    for number in range(83):
        items.append((tmp_path / f"{number}.png", None))
        Image.fromarray(NOISE[number % 50 :][:30, :25]).save(tmp_path / f"{number}.png")
    small = preprocess(16)
    batches = list(small.read_ahead(items, 10, threads))
    assert [len(batch) for batch in batches] == [10] * 8 + [3]
    np.testing.assert_array_equal(np.concatenate(batches), small.read(items))
    assert list(small.read_ahead([], 10, threads)) == []
    # The images of earlier batches come before the error.
    (tmp_path / "31.png").write_bytes(b"damaged")
    reading = small.read_ahead(items, 10, threads)
    np.testing.assert_array_equal(next(reading), batches[0])
    with pytest.raises(UserError, match=r"31\.png: not a readable image"):
        list(reading)


def test_images_are_read_ahead_only_as_far_as_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(NOISE).save(tmp_path / "a.png")
    reads = []

    def read_pixels(file: Path) -> np.ndarray:
        reads.append(file)
        return NOISE

    monkeypatch.setattr(pixels, "read_pixels", read_pixels)
    reading = preprocess(16).read_ahead([(tmp_path / "a.png", None)] * 200, 5, 2)
    next(reading)
    reading.close()
    assert 5 <= len(reads) <= 5 * (pixels.BATCHES_AHEAD + 1)
