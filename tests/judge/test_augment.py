"""Changes of training images: what they do to a picture, and that a training with them is
reproducible.
"""

import colorsys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.judge import augment, checkpoint, training
from compclip.judge.augment import (
    CONTRAST,
    FULL,
    GAMMA,
    LIGHT,
    MAX_SHIFT,
    SATURATION,
    SIZE,
    START,
    VIEWS,
    Changes,
    change,
    draw_changes,
    strength_at,
)

from .conftest import Model, Train

NEUTRAL = Changes(
    view=torch.zeros(1, dtype=torch.long),
    size=torch.ones(1),
    right=torch.zeros(1),
    down=torch.zeros(1),
    light=torch.ones(1),
    contrast=torch.ones(1),
    gamma=torch.ones(1),
    saturation=torch.ones(1),
    noise=torch.zeros(1),
    grain=0,
)
FACTORS = {
    "size": SIZE,
    "light": LIGHT,
    "contrast": CONTRAST,
    "gamma": GAMMA,
    "saturation": SATURATION,
}


def changed(pixels: torch.Tensor, **values: float) -> torch.Tensor:
    """Return one image, (height, width, 3), with these changes."""
    return change(
        pixels[None],
        replace(NEUTRAL, **{name: torch.tensor([value]) for name, value in values.items()}),
    )[0]


def square(side: int = 40) -> torch.Tensor:
    """Return a gray picture with a bright square of half its sides in the middle."""
    picture = torch.full((side, side, 3), 60.0)
    picture[side // 4 : -side // 4, side // 4 : -side // 4] = 180
    return picture


def extent(picture: torch.Tensor) -> tuple[int, int, int, int]:
    """Return top, bottom, left and right of what is bright."""
    rows, columns = (picture[..., 0] > 120).nonzero().T
    return int(rows.min()), int(rows.max()) + 1, int(columns.min()), int(columns.max()) + 1


@given(st.integers(0, 2**32))
def test_neutral_changes_leave_an_image(seed: int) -> None:
    pixels = torch.randint(0, 256, (9, 7, 3), generator=torch.Generator().manual_seed(seed)).float()
    torch.testing.assert_close(changed(pixels), pixels, atol=1e-2, rtol=0)


def test_size_and_place_move_a_square() -> None:
    assert extent(square()) == (10, 30, 10, 30)
    assert extent(changed(square(), size=0.5)) == (15, 25, 15, 25)
    assert extent(changed(square(), right=0.1)) == (10, 30, 14, 34)
    assert extent(changed(square(), down=-0.1)) == (6, 26, 10, 30)
    assert extent(changed(square(), size=0.5, right=0.1)) == (15, 25, 19, 29), (
        "the shift is that of the result"
    )


def test_the_border_is_continued() -> None:
    picture = torch.linspace(0, 250, 20)[:, None, None].expand(20, 20, 3)
    smaller = changed(picture, size=0.5)
    assert (smaller[:4] <= 1).all()
    assert (smaller[-4:] == 250).all()


def test_tones_of_a_gray_image() -> None:
    gray = torch.tensor([51.0, 102.0]).repeat_interleave(3).view(1, 2, 3)
    torch.testing.assert_close(changed(gray, light=0.5), gray / 2)
    torch.testing.assert_close(changed(gray, contrast=0.5)[0, :, 0], torch.tensor([63.75, 89.25]))
    torch.testing.assert_close(changed(gray, gamma=2)[0, :, 0], torch.tensor([10.2, 40.8]))
    torch.testing.assert_close(changed(gray, saturation=0.5), gray)


def test_without_saturation_an_image_is_gray() -> None:
    pixels = torch.tensor([[[200.0, 40.0, 90.0]]])
    red, green, blue = changed(pixels, saturation=0)[0, 0].tolist()
    assert red == pytest.approx(0.299 * 200 + 0.587 * 40 + 0.114 * 90, abs=1e-3)
    assert green == pytest.approx(red, abs=1e-3)
    assert blue == pytest.approx(red, abs=1e-3)


@given(st.integers(0, 2**32))
def test_hue_stays(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Colors that no mild change moves out of the range.
    pixels = torch.randint(70, 180, (64, 1, 1, 3), generator=generator).float()
    drawn = replace(draw_changes(64, seed, 0), noise=torch.zeros(64))
    after = change(pixels, drawn).view(-1, 3)
    for before, later in zip(pixels.view(-1, 3).tolist(), after.tolist(), strict=True):
        hue, saturation, _ = colorsys.rgb_to_hsv(*before)
        turned = abs(colorsys.rgb_to_hsv(*later)[0] - hue)
        assert saturation < 0.02 or min(turned, 1 - turned) < 1e-3


def test_changes_are_within_their_ranges() -> None:
    drawn = draw_changes(4000, 0, 1)
    for name, (low, high) in FACTORS.items():
        values = getattr(drawn, name)
        assert low <= values.min() < low * 1.02
        assert high / 1.02 < values.max() <= high
    assert drawn.right.abs().max() <= MAX_SHIFT
    assert drawn.down.abs().max() <= MAX_SHIFT
    assert ((drawn.size == 1) == (drawn.right == 0)).all()
    assert sorted(drawn.view.unique()) == list(range(VIEWS))


def test_a_process_changes_its_part_of_a_batch_as_one_process_does() -> None:
    pixels = torch.randint(0, 256, (8, 6, 6, 3), generator=torch.Generator().manual_seed(0)).float()
    whole = change(pixels, draw_changes(8, 3, 5))
    half = draw_changes(8, 3, 5).each(lambda values: values[4:])
    assert torch.equal(change(pixels[4:], half), whole[4:])
    assert not torch.equal(change(pixels, draw_changes(8, 3, 6)), whole)


def test_changes_grow_from_none() -> None:
    steps = 100
    strengths = [strength_at(step, steps) for step in range(steps)]
    assert strengths == sorted(strengths)
    assert strengths[: round(START * steps) + 1] == [0] * (round(START * steps) + 1)
    assert strengths[round(FULL * steps) :] == [1] * (steps - round(FULL * steps))
    pixels = torch.randint(1, 256, (4, 5, 5, 3), generator=torch.Generator().manual_seed(0)).float()
    torch.testing.assert_close(
        change(pixels, draw_changes(4, 0, 0, strength=0)), pixels, atol=1e-2, rtol=0
    )


def test_noise_is_gray_and_of_its_strength() -> None:
    pixels = torch.full((64, 64, 3), 128.0)
    difference = changed(pixels, noise=10) - pixels
    torch.testing.assert_close(difference[..., 0], difference[..., 1])
    assert difference.std() == pytest.approx(10, rel=0.1)


def test_preprocessing_normalizes_after_a_change() -> None:
    preprocess = Preprocess(PREPROCESS | {"size": 2}, None)
    pixels = np.full((1, 2, 2, 3), 100, np.uint8)
    darker = preprocess.floats(pixels, torch.device("cpu"), lambda x: x / 2)
    torch.testing.assert_close(darker, preprocess.floats(pixels // 2, torch.device("cpu")))


def test_a_killed_training_resumes_to_the_same_bytes(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"epochs": 3, "augment": "mild"}
    whole = train("whole", cache="one", **settings)
    real, losses = training.clip_loss, []

    def killed(*arguments: torch.Tensor) -> torch.Tensor:
        losses.append(real(*arguments))
        if len(losses) == 7:  # in the second of three epochs of four steps
            raise KeyboardInterrupt
        return losses[-1]

    monkeypatch.setattr(training, "clip_loss", killed)
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    with pytest.raises(KeyboardInterrupt):
        train("killed", cache="two", **settings)
    resumed = train("killed", cache="two", **settings)
    assert len(losses) == 7 + 8, "one epoch of four steps was kept"
    assert (resumed / "weights.safetensors").read_bytes() == (
        whole / "weights.safetensors"
    ).read_bytes()


def test_changes_change_the_judge(train: Train) -> None:
    plain, mild = (
        load_file(train(name, augment=name) / "weights.safetensors") for name in ("none", "mild")
    )
    assert any(not torch.equal(plain[name], mild[name]) for name in plain)


def test_a_frozen_tower_keeps_views(
    train: Train, model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neutral views are the images themselves; others train another judge."""
    settings = {
        "model": model("trunk"),
        "trainable": ["visual.head.*", "text.*"],
        "augment": "mild",
    }

    def weights(name: str) -> dict[str, torch.Tensor]:
        return load_file(train(name, cache=name, **settings) / "weights.safetensors")

    with caplog.at_level("INFO", "compclip"):
        views = weights("views")
    assert f"in {VIEWS} views" in caplog.text
    monkeypatch.setattr(augment, "UNMOVED", 1)
    monkeypatch.setattr(augment, "NOISE", 0)
    for name in FACTORS:
        monkeypatch.setattr(augment, name.upper(), (1, 1))
    neutral = weights("neutral")
    plain = load_file(
        train("plain", cache="plain", **settings | {"augment": "none"}) / "weights.safetensors"
    )
    for name, tensor in plain.items():
        torch.testing.assert_close(neutral[name], tensor, atol=1e-2, rtol=1e-2)
    assert any(not torch.allclose(views[name], tensor, atol=1e-2) for name, tensor in plain.items())
