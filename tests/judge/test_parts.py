"""The small parts of a judge: loss, schedule, precision, tokens, pixels, the watched accuracy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from workflow_scripts.common.errors import UserError
from workflow_scripts.judge import pixels, tokens
from workflow_scripts.judge.loss import clip_loss
from workflow_scripts.judge.precision import autocast
from workflow_scripts.judge.schedule import rate
from workflow_scripts.judge.training import in_batch_accuracy

PreprocessCfg, image_transform_v2 = pixels.PreprocessCfg, pixels.image_transform_v2


def test_loss_by_hand() -> None:
    images = torch.eye(2)
    texts = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    rows = [-math.log(math.e**2 / (math.e**2 + math.e**1.2)), -math.log(math.e**1.6 / (math.e**1.6 + 1))]
    columns = [-math.log(math.e**2 / (math.e**2 + 1)), -math.log(math.e**1.6 / (math.e**1.6 + math.e**1.2))]
    assert clip_loss(images, texts, torch.tensor(2.0)).item() == pytest.approx((sum(rows) + sum(columns)) / 4)


def test_loss_is_open_clips() -> None:
    generator = torch.Generator().manual_seed(0)
    images, texts = (torch.nn.functional.normalize(torch.randn(7, 5, generator=generator), dim=-1) for _ in range(2))
    theirs = tokens.open_clip.ClipLoss()(images, texts, torch.tensor(14.0))
    assert clip_loss(images, texts, torch.tensor(14.0)).item() == pytest.approx(theirs.item(), rel=1e-6)


@given(st.integers(1, 500), st.floats(0, 0.99))
def test_rate_climbs_then_falls(steps: int, warmup: float) -> None:
    rates = [rate(step, steps, 2.0, warmup) for step in range(steps)]
    climb = round(warmup * steps)
    assert all(0 <= r <= 2 for r in rates)
    assert rates[:climb] == sorted(rates[:climb]) and rates[climb:] == sorted(rates[climb:], reverse=True)
    if climb:
        assert rates[climb - 1] == 2.0
    assert climb == steps or rates[climb] == 2.0


def test_a_constant_rate_climbs_and_stays() -> None:
    assert [rate(step, 6, 2.0, 1 / 3, "constant") for step in range(6)] == [1, 2, 2, 2, 2, 2]


def test_float16_needs_a_gpu() -> None:
    with pytest.raises(UserError, match="amp_fp16 needs a GPU"):
        autocast("amp_fp16", torch.device("cpu"))


def test_vocabulary_leaves_rare_words_unknown() -> None:
    words = tokens.make_vocabulary(["A red bird, red!", "a red-winged bird", "rare"])
    assert words == [*tokens.SPECIAL, "red", "a", "bird"]
    ids = tokens.WordTokenizer(words, 6)(["a rare bird"])
    assert ids.tolist() == [[4, tokens.UNKNOWN, 5, tokens.END, tokens.PAD, tokens.PAD]]


@pytest.mark.parametrize("own", [True, False])
def test_a_truncated_caption_keeps_its_end(own: bool) -> None:
    short, long = " A red Bird ", "a red bird with a red wing and a red tail"
    words = tokens.make_vocabulary([long, long]) if own else None
    cfg = {"text_cfg": {"context_length": 6, **({"tower": "words"} if own else {})}}
    tokenizer = tokens.get_tokenizer(cfg, words)
    ids = tokens.tokenize(tokenizer, [short, long])
    end = tokens.END if own else tokenizer.eot_token_id
    assert tokens.count_truncated(tokenizer, [short, long], ids) == 1
    assert ids.shape == (2, 6) and ids[1, -1] == end
    assert ids[0].tolist().count(end) == 1
    assert torch.equal(ids[0], tokens.tokenize(tokenizer, ["a red bird"])[0])


@pytest.mark.parametrize("length", [77, 248])
def test_open_clips_tokenizer_keeps_the_end(length: int) -> None:
    """At any length, and a caption is cut where it has one token too many, no sooner."""
    tokenizer = tokens.get_tokenizer({"text_cfg": {"context_length": length}}, None)
    captions = [" ".join(["bird"] * n) for n in (1, length - 3, length - 2, length - 1, 10_000)]
    ids = tokens.tokenize(tokenizer, captions)
    assert ids.shape == (5, length) and (ids[:, 0] == tokenizer.sot_token_id).all()
    assert (ids == tokenizer.eot_token_id).sum(dim=1).tolist() == [1] * 5
    assert (ids.argmax(dim=1) + 1).tolist() == [3, length - 1, length, length, length]
    assert [tokens.count_truncated(tokenizer, [c], row[None]) for c, row in zip(captions, ids, strict=True)] == [
        0, 0, 0, 1, 1,
    ]  # fmt: skip


def test_no_captions_have_no_tokens() -> None:
    assert tokens.tokenize(tokens.WordTokenizer([*tokens.SPECIAL], 5), []).shape == (0, 5)


def test_crop_by_hand() -> None:
    # The longer side is 40: 30 pixels to each side of the center (60, 50), cut off below at 70.
    assert pixels.crop_around((40, 40, 40, 20), (200, 70), 0.75) == (30, 20, 90, 70)
    assert pixels.crop_around((0, 0, 10, 10), (20, 20), 0.75) == (0, 0, 12, 12)


@pytest.mark.parametrize(
    ("size", "mode", "by"),
    [
        (64, "shortest", "bicubic"),
        (64, "shortest", "bilinear"),
        (128, "shortest", "bicubic"),
        ((40, 64), "shortest", "bicubic"),
        (64, "squash", "bicubic"),
        ((40, 64), "squash", "bilinear"),
        (64, "longest", "bicubic"),
    ],
)
def test_pixels_are_open_clips(tmp_path: Path, size: int | tuple[int, int], mode: str, by: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (90, 130, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    cfg = {**PreprocessCfg().__dict__, "size": size, "resize_mode": mode, "interpolation": by}
    theirs = image_transform_v2(PreprocessCfg(**cfg), is_train=False)(Image.open(tmp_path / "noise.png"))
    ours = pixels.Preprocess(cfg, None)
    read = ours.read([(tmp_path / "noise.png", None)])
    assert read.shape == (1, *ours.size, 3) and read.dtype == np.uint8
    off = (ours.floats(read, torch.device("cpu"))[0] - theirs).abs() * 255 * torch.tensor(cfg["std"]).view(3, 1, 1)
    assert off.max() < 1.001 and (off > 0.01).float().mean() < 0.03


def test_images_read_together_are_read_as_each_alone(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    items: list[pixels.Item] = []
    for i in range(2 * pixels.FITTED_AT_ONCE + 3):
        shape = [(30, 20, 3), (20, 30, 3), (16, 16, 3)][i % 3]
        items.append((tmp_path / f"{i}.png", (2.0, 3.0, 12.0, 9.0) if i % 4 == 0 else None))
        Image.fromarray(draw.integers(0, 256, shape, dtype=np.uint8)).save(items[-1][0])
    preprocess = pixels.Preprocess({**PreprocessCfg().__dict__, "size": 16}, 0.75)
    alone = np.concatenate([preprocess.read([item]) for item in items])
    np.testing.assert_array_equal(preprocess.read(items), alone)
    assert preprocess.read([]).shape == (0, 16, 16, 3)


@pytest.mark.parametrize("mode", ["RGB", "P", "RGBA", "L", "LA", "1", "I;16"])
def test_a_png_is_what_pillow_reads(tmp_path: Path, mode: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    if mode == "I;16":
        picture = Image.fromarray(noise[..., 0].astype(np.uint16) * 257)
    elif mode == "P":
        picture = picture.quantize(200)
    else:
        picture = picture.convert(mode)
    path = tmp_path / "image.png"
    for see_through in (None, 3) if mode == "P" else (None,):
        picture.save(path, **({} if see_through is None else {"transparency": see_through}))
        read = pixels.Preprocess({**PreprocessCfg().__dict__, "size": 16}, None).read([(path, None)])[0]
        np.testing.assert_array_equal(read, np.array(Image.open(path).convert("RGB")))
        plain = mode in ("RGB", "P") and see_through is None
        assert (pixels._decode_png(path.read_bytes(), None) is not None) == plain


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    preprocess = pixels.Preprocess({**PreprocessCfg().__dict__, "size": 8}, None)
    noise = np.random.default_rng(0).integers(0, 256, (90, 90, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.png")
    whole = (tmp_path / "whole.png").read_bytes()
    for broken in (b"\x89PNG\r\n\x1a\nnothing", b"", whole[:40], whole[: len(whole) // 2]):
        (tmp_path / "broken.png").write_bytes(broken)
        with pytest.raises(UserError, match=r"broken\.png: not a readable image"):
            preprocess.read([(tmp_path / "broken.png", None)])


def test_accuracy_counts_ties_by_their_share() -> None:
    images = np.eye(3, dtype=np.float32)
    texts = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0]], np.float32)
    # Image 0 ties with three captions, image 1 with two, image 2 loses nothing but ties with all at 0.
    assert in_batch_accuracy(images, texts) == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) / 3)
    assert math.isnan(in_batch_accuracy(images[:0], texts[:0]))
    assert in_batch_accuracy(np.tile(images, (40, 1)), np.tile(images, (40, 1)), group=3) == 1
