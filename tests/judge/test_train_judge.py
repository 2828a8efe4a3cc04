"""Training a judge on the squares: it learns, resumes, leaves what is frozen; its small parts;
stretched judges.
"""

import json
import math
import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from compclip.clip.config import ModelConfig
from compclip.clip.device import check_precision
from compclip.clip.model import build, judge_hash, load_judge, read_judge
from compclip.clip.sources import find_model
from compclip.clip.vision import open_clip
from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError
from compclip.judge import checkpoint, training
from compclip.judge.config import JudgeConfig
from compclip.judge.training import clip_loss, in_batch_accuracy, rate
from compclip.specs.stretch import stretch, write_judge
from tests.clip.conftest import clip_folder
from tests.core.test_digests import flip
from tests.specs.test_stretch import TINY

from .conftest import Train, untrained

FILES = ("weights.safetensors", "model.json", "vocabulary.json", "log.csv", "manifest.json")


def contents(folder: Path) -> dict[str, bytes]:
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    return {name: (folder / name).read_bytes() for name in FILES}


def test_it_learns(train: Train) -> None:
    rows = pd.read_csv(train("judge", epochs=15) / "log.csv")
    assert list(rows["epoch"]) == list(range(1, 16)) and rows["step"].iloc[-1] == 15 * 4
    assert rows["loss"].iloc[-1] < 0.5 * rows["loss"].iloc[0]
    assert (
        rows["retrieval_seen"].iloc[-1] > 0.3 and rows["retrieval_unseen"].iloc[-1] > 0.3
    )  # chance: 1/56
    assert rows["lr"].max() <= 0.01 and rows["lr"].iloc[-1] < 0.001


def test_a_killed_training_resumes_to_the_same_bytes(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If its files are damaged, it starts again, to the same bytes, too, even after its end."""
    settings = {"epochs": 4, "captions": 2}
    whole = contents(train("whole", cache="one", **settings))
    seen = 0
    real = training.clip_loss

    def killed(*arguments: torch.Tensor) -> torch.Tensor:
        nonlocal seen
        seen += 1
        if seen == 21:  # in the third of four epochs of four steps of two losses
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(training, "clip_loss", killed)
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    with pytest.raises(KeyboardInterrupt):
        train("cut", cache="two", **settings)
    shutil.copytree(tmp_path / "two", tmp_path / "three")
    seen = -1000
    assert contents(train("cut", cache="two", **settings)) == whole
    assert seen == -1000 + 16, "two epochs of four steps remained"
    for cache, files in (("one", 1), ("three", 4)):
        kept = (tmp_path / cache).rglob("*.*")
        damaged = [path for path in kept if path.name == "checkpoint.pt" or ".bin" in path.name]
        for file in damaged:
            flip(file, random.Random(0))
        caplog.clear()
        with caplog.at_level("INFO", "compclip"):
            assert contents(train("cut", cache=cache, **settings)) == whole
        assert len(damaged) == files and all(
            f"{file}: damaged; " in caplog.text for file in damaged
        )
        assert "resumed" not in caplog.text


def test_captions_of_a_step_are_distinct_and_what_does_not_decay(squares: Path) -> None:
    examples = training.Examples(
        np.zeros((3, 1)), torch.zeros(9, 1), np.array([0, 4, 5]), np.array([4, 1, 4])
    )
    drawn = training._draw_captions(np.random.default_rng(0), examples, 3)
    assert drawn.shape == (3, 3)
    assert len(set(drawn[:, 0])) == 3 and set(drawn[:, 0]) <= {0, 1, 2, 3}
    assert set(drawn[:, 1]) == {4}
    assert len(set(drawn[:, 2])) == 3 and set(drawn[:, 2]) <= {5, 6, 7, 8}
    config = JudgeConfig(model=str(squares / "tiny.json"))
    model = build(config, ["a red square"] * 2, 0).model
    decayed, spared = training.make_optimizer(model, config.lr, config.weight_decay).param_groups
    assert decayed["weight_decay"] == config.weight_decay and spared["weight_decay"] == 0
    names = {id(p): name for name, p in model.named_parameters()}
    assert {names[id(p)] for p in spared["params"]} >= {
        "logit_scale",
        "text.bias",
        "text.norm.weight",
    }
    assert all(p.ndim >= 2 for p in decayed["params"])


def test_frozen_parameters_stay_and_nan_is_refused(
    train: Train, squares: Path, tmp_path: Path
) -> None:
    folder = untrained(squares, tmp_path / "start")
    before = load_file(folder / "weights.safetensors")
    after = load_file(
        train("end", trainable=["text.*", "visual.projection.*"]) / "weights.safetensors"
    )
    for name, tensor in before.items():
        still = name.startswith("visual.layers") or name == "logit_scale"
        assert torch.equal(tensor, after[name]) == still, name
    before["text.norm.weight"][0] = np.nan
    save_file(before, folder / "weights.safetensors")
    with pytest.raises(
        UserError,
        match=r"^test_seen: caption 1 of 56: its embedding by judge .* is NaN or infinite \(55",
    ):
        train("judge", epochs=0, pretrained=str(folder / "weights.safetensors"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"trainable": ["text.*", "visual.layer9*"]},
            r"trainable: 'visual\.layer9\*' matches no parameter; .* logit_",
        ),
        (
            {"model": "RN999"},
            r"model: unknown 'RN999'; use one of birds, sketch.*open_clip\.list_models\(\)",
        ),
        (
            {"model": "RN50", "pretrained": "nothing"},
            r"pretrained: 'nothing' is neither .* of RN50; its tags: openai",
        ),
        (
            {"gpus": 2, "device": "cpu"},
            r"gpus: 2, but started as 1 processes; start it by torchrun",
        ),
    ],
)
def test_settings_that_do_not_fit(train: Train, settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=rf"judge\.{message}"):
        train("judge", **settings)


def test_a_saved_judge_encodes_the_same(train: Train, squares: Path, tmp_path: Path) -> None:
    folder = train("judge")
    judge = load_judge(folder, threads=1, device="cpu")
    assert (
        judge.hash
        == judge_hash(folder)
        == json.loads((folder / "manifest.json").read_text())["judge_hash"]
    )
    items = [(squares / "images" / f"{n:03d}.png", None) for n in range(11)]
    texts = [f"a {word} square" for word in ("red", "green", "blue", "unheard", "")]
    images, captions = judge.encode_images(items, 4), judge.encode_texts(texts, 4)
    assert images.shape == (11, 32) and captions.shape == (5, 32) and images.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1, rtol=1e-5)
    order = np.random.default_rng(0).permutation(11)
    assert np.array_equal(judge.encode_images([items[i] for i in order], 4), images[order]), (
        "the order of images"
    )
    assert np.array_equal(judge.encode_images(items[10:], 4), images[10:]), "a padded batch"
    assert np.array_equal(judge.encode_texts(texts[3:], 4), captions[3:])
    assert np.array_equal(judge.encode_images(items, 4, judge), np.hstack([images, images])), (
        "by two judges"
    )
    shutil.copytree(folder, tmp_path / "copy")
    settings = json.loads((tmp_path / "copy" / "model.json").read_text())
    (tmp_path / "copy" / "model.json").write_text(json.dumps({**settings, "crop": 0.9}))
    assert judge_hash(tmp_path / "copy") != judge.hash


def test_truncated_captions_are_counted(
    train: Train, squares: Path, tmp_path: Path, caplog
) -> None:
    cfg = json.loads((squares / "tiny.json").read_text())
    cfg["text_cfg"]["context_length"] = (
        9  # a caption has eight tokens with its end, the other eleven
    )
    (tmp_path / "short.json").write_text(json.dumps(cfg))
    with caplog.at_level("WARNING", "compclip"):
        folder = train("judge", model=str(tmp_path / "short.json"), epochs=1)
    assert json.loads((folder / "manifest.json").read_text())["truncated_captions"] == 112
    assert (
        "112 of 224 captions are longer than the model reads; truncated before their end token"
        in caplog.text
    )


def test_a_stretched_judge_is_used_as_it_is_or_trained_further(
    train: Train, tmp_path: Path
) -> None:
    folder, source = clip_folder(tmp_path / "short", TINY), tmp_path / "stretched"
    built = build(ModelConfig(model=f"local-dir:{folder}"), [], 0)
    write_judge(stretch(built), "short-248", None, {}, source)
    settings = {
        "model": str(source / "model.json"),
        "pretrained": str(source / "weights.safetensors"),
    }
    assert find_model(str(source / "model.json"))[0]["text_cfg"]["context_length"] == 248
    folder = train("judge", epochs=0, crop=None, **settings)
    for name in ("weights.safetensors", "model.json", "vocabulary.json"):
        assert (folder / name).read_bytes() == (source / name).read_bytes(), name
    manifest = read_json(folder / "manifest.json")
    assert manifest["model"] == "short-248" and manifest["truncated_captions"] == 0
    assert JudgeConfig(**settings).files() == [*settings.values(), str(source / "vocabulary.json")]
    built, name, _ = read_judge(
        train("further", epochs=1, trainable=["text_projection"], **settings)
    )
    start = read_judge(source)[0].model.state_dict()
    changed = {
        key
        for key, tensor in built.model.state_dict().items()
        if not torch.equal(tensor, start[key])
    }
    assert changed == {"text_projection"} and name == "short-248"
    assert built.model_cfg == read_json(source / "model.json")["model_cfg"]


def test_loss_is_open_clips_and_accuracy_counts_ties_by_their_fraction() -> None:
    generator = torch.Generator().manual_seed(0)
    images, texts = (
        torch.nn.functional.normalize(torch.randn(7, 5, generator=generator), dim=-1)
        for _ in range(2)
    )
    theirs = open_clip().ClipLoss()(images, texts, torch.tensor(14.0))
    assert clip_loss(images, texts, torch.tensor(14.0)).item() == pytest.approx(
        theirs.item(), rel=1e-6
    )
    pictures = np.eye(3, dtype=np.float32)
    captions = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0]], np.float32)
    # Image 0 ties with three captions, image 1 with two, image 2 loses nothing but ties with all at
    # 0.
    assert in_batch_accuracy(pictures, captions) == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) / 3)
    assert math.isnan(in_batch_accuracy(pictures[:0], captions[:0]))
    assert in_batch_accuracy(np.tile(pictures, (40, 1)), np.tile(pictures, (40, 1)), group=3) == 1


@given(st.integers(1, 500), st.floats(0, 0.99))
def test_rate_climbs_then_falls(steps: int, warmup: float) -> None:
    rates = [rate(step, steps, 2.0, warmup) for step in range(steps)]
    climb = round(warmup * steps)
    assert all(0 <= r <= 2 for r in rates)
    assert rates[:climb] == sorted(rates[:climb]) and rates[climb:] == sorted(
        rates[climb:], reverse=True
    )
    if climb:
        assert rates[climb - 1] == 2.0
    assert climb == steps or rates[climb] == 2.0


def test_a_constant_rate_climbs_and_stays_and_float16_needs_a_gpu() -> None:
    assert [rate(step, 6, 2.0, 1 / 3, "constant") for step in range(6)] == [1, 2, 2, 2, 2, 2]
    with pytest.raises(UserError, match=r"^its setting: amp_fp16 needs a GPU"):
        check_precision("amp_fp16", torch.device("cpu"), "its setting")
    check_precision("amp_bf16", torch.device("cpu"), "its setting")
