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

from workflow_scripts.clip import pixels, pretrained, tokens
from workflow_scripts.clip.precision import check_precision
from workflow_scripts.core.errors import UserError
from workflow_scripts.judge.loss import clip_loss
from workflow_scripts.judge.schedule import rate
from workflow_scripts.judge.training import in_batch_accuracy

ClipLoss = pretrained.open_clip.ClipLoss
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
    theirs = ClipLoss()(images, texts, torch.tensor(14.0))
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
    with pytest.raises(UserError, match=r"^its setting: amp_fp16 needs a GPU"):
        check_precision("amp_fp16", torch.device("cpu"), "its setting")
    check_precision("amp_bf16", torch.device("cpu"), "its setting")


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
    assert tokens.find_cut(tokenizer, [short, long], ids).tolist() == [False, True]
    assert ids.shape == (2, 6) and ids[1, -1] == end
    assert ids[0].tolist().count(end) == 1
    assert torch.equal(ids[0], tokens.tokenize(tokenizer, ["a red bird"])[0])


KINDS = ("words", "open_clip", "bert", "siglip", "clips")


def tokenizer_of(kind: str, length: int, folder: Path) -> tuple[tokens.Tokenizer, int, int, int]:
    """A tokenizer that knows ``bird``; its end token, that one's place in a full row, and how many words fit."""
    if kind in ("words", "open_clip"):
        words = [*tokens.SPECIAL, "bird"] if kind == "words" else None
        cfg = {"text_cfg": {"context_length": length, **({"tower": "words"} if words else {})}}
        tokenizer = tokens.get_tokenizer(cfg, words)
        return tokenizer, tokens.END if words else tokenizer.eot_token_id, -1, length - (1 if words else 2)
    # As models from Hugging Face have them: with a token before the words, with padding that is the end token too,
    # and in open_clip's mode "clips", in which a token of its own ends every row.
    transformers = pytest.importorskip("transformers")
    library = pytest.importorskip("tokenizers")
    names = ["[PAD]", "[CLS]", "[SEP]", "[BOS]", "[UNK]", "bird"]
    inner = library.Tokenizer(library.models.WordLevel({name: i for i, name in enumerate(names)}, "[UNK]"))
    inner.pre_tokenizer = library.pre_tokenizers.Whitespace()
    if kind != "clips":
        template = "$A [SEP]" if kind == "siglip" else "[CLS] $A [SEP]"
        inner.post_processor = library.processors.TemplateProcessing(
            single=template, special_tokens=[(name, names.index(name)) for name in ("[CLS]", "[SEP]")]
        )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[SEP]" if kind == "siglip" else "[PAD]",
        cls_token="[CLS]", sep_token="[SEP]", bos_token="[BOS]", eos_token="[SEP]",
    ).save_pretrained(folder)  # fmt: skip
    text_cfg = {"context_length": length, "hf_tokenizer_name": str(folder)}
    mode = {"tokenizer_mode": "clips"} if kind == "clips" else {}
    tokenizer = tokens.get_tokenizer({"text_cfg": {**text_cfg, **mode}}, None)
    place, fitting = {"bert": (-1, length - 2), "siglip": (-1, length - 1), "clips": (-2, length - 3)}[kind]
    return tokenizer, 2, place, fitting


@pytest.mark.parametrize("kind", KINDS)
def test_every_tokenizer_keeps_the_end_of_what_it_cuts(kind: str, tmp_path: Path) -> None:
    tokenizer, end, place, fitting = tokenizer_of(kind, 8, tmp_path)
    captions = [" ".join(["Bird"] * n) for n in range(14)]
    ids = tokens.tokenize(tokenizer, captions)
    assert ids.shape == (14, 8) and (ids[fitting:, place] == end).all()
    assert torch.equal(ids[fitting + 1 :], ids[fitting].expand(13 - fitting, 8))
    assert tokens.find_cut(tokenizer, captions, ids).tolist() == [n > fitting for n in range(14)]
    assert tokens.find_cut(tokenizer, [], ids[:0]).tolist() == []
    for row in range(14):
        assert tokens.find_cut(tokenizer, captions[row : row + 1], ids[[row]]).tolist() == [row > fitting]
    assert tokens.cut_texts(tokenizer, captions * 2) == {c for c in captions if len(c.split()) > fitting}


def test_captions_are_looked_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tokens.WordTokenizer([*tokens.SPECIAL, "bird"], 4)
    monkeypatch.setattr(tokens, "AT_ONCE", 2)
    captions = ["bird " * n for n in (1, 5, 2, 7, 9, 5)]
    assert tokens.cut_texts(tokenizer, captions) == {"bird " * n for n in (5, 7, 9)}
    assert tokens.cut_texts(tokenizer, []) == set()


@pytest.mark.parametrize("length", [77, 248])
def test_open_clips_tokenizer_keeps_the_end(length: int) -> None:
    """At any length, and a caption is cut where it has one token too many, no sooner."""
    tokenizer = tokens.get_tokenizer({"text_cfg": {"context_length": length}}, None)
    captions = [" ".join(["bird"] * n) for n in (1, length - 3, length - 2, length - 1, 10_000)]
    ids = tokens.tokenize(tokenizer, captions)
    assert ids.shape == (5, length) and (ids[:, 0] == tokenizer.sot_token_id).all()
    assert (ids == tokenizer.eot_token_id).sum(dim=1).tolist() == [1] * 5
    assert (ids.argmax(dim=1) + 1).tolist() == [3, length - 1, length, length, length]
    assert tokens.find_cut(tokenizer, captions, ids).tolist() == [False, False, False, True, True]


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


def test_bytes_of_an_image_are_what_its_file_is(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    preprocess = pixels.Preprocess({**PreprocessCfg().__dict__, "size": 16}, 0.75)
    for name, size in (("a.png", (16, 16, 3)), ("b.jpg", (30, 20, 3)), ("c.webp", (18, 40, 3))):
        path = tmp_path / name
        Image.fromarray(draw.integers(0, 256, size, dtype=np.uint8)).save(path)
        content = pixels.Content(path.read_bytes(), "1.tar:a")
        for box in (None, (2.0, 3.0, 12.0, 9.0)):
            both = preprocess.read([(path, box), (content, box)])
            np.testing.assert_array_equal(*both)
    with pytest.raises(UserError, match=r"^1\.tar:a: not a readable image .*: replace it or leave it out"):
        preprocess.read([(pixels.Content(content.raw[:20], "1.tar:a"), None)])


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
