"""What is frozen is computed once, with the same result."""

from pathlib import Path

import pytest
import torch
from torch import nn

from compclip.clip.freeze_point import image_freeze_point, text_freeze_point
from compclip.clip.model import construct
from compclip.clip.sources import find_model
from compclip.clip.text_tower import lengths
from compclip.judge import training_inputs
from compclip.judge.training import choose_trainable, training_mode

from .conftest import PUBLISHED, RESNET, TRUNK, VIT, Model, Train, assert_alike, untrained


@pytest.mark.parametrize(
    ("cfg", "patterns", "last_frozen"),
    [
        (RESNET, PUBLISHED, ("layer3.0", "resblocks.0")),
        (
            RESNET,
            ["visual.layer2.1.bn3.weight", "transformer.resblocks.0.ln_1.bias"],
            ("layer2.0", None),
        ),
        (RESNET, ["logit_scale"], ("attnpool", "resblocks.1")),
        (RESNET, ["visual.attnpool.*", "token_embedding.*"], ("layer4.0", None)),
        (RESNET, ["visual.conv2.weight", "positional_embedding"], (None, None)),
        (RESNET, ["*"], (None, None)),
        (
            VIT,
            ["visual.transformer.resblocks.1.*", "text_projection"],
            ("resblocks.0", "resblocks.1"),
        ),
        (VIT, ["visual.proj"], ("resblocks.1", "resblocks.1")),
        (VIT, ["visual.class_embedding"], (None, "resblocks.1")),
        (VIT, ["logit_scale"], ("pooling", "resblocks.1")),
        (TRUNK, ["visual.head.*", "text.*"], ("trunk", None)),
        (TRUNK, ["visual.trunk.layer4.*"], (None, None)),
        (
            {**VIT, "vision_cfg": {**VIT["vision_cfg"], "patch_dropout": 0.5}},
            ["logit_scale"],
            (None, "resblocks.1"),
        ),
        (
            {**VIT, "text_cfg": {**VIT["text_cfg"], "no_causal_mask": True}},
            ["logit_scale"],
            ("pooling", None),
        ),
    ],
)
def test_a_tower_is_cut_before_what_trains(
    cfg: dict, patterns: list[str], last_frozen: tuple[str | None, ...]
) -> None:
    torch.manual_seed(0)
    model = construct(cfg)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(
                torch.randn_like(parameter) * 0.1
            )  # otherwise a ResNet's blocks do nothing
    choose_trainable(model, patterns)
    images, texts = image_freeze_point(model), text_freeze_point(model)
    assert (images and images.last_frozen, texts and texts.last_frozen) == last_frozen
    pixels = torch.randn(3, 3, 32, 32)
    ids = torch.tensor([[7, 3, 9, 0, 0], [8, 9, 0, 0, 0], [1, 2, 3, 4, 9]])
    with torch.inference_mode():
        if images:
            torch.testing.assert_close(
                images.trained(images.frozen(pixels)), model.encode_image(pixels)
            )
        if texts:
            ids = torch.nn.functional.pad(ids, (0, 7))
            whole = model.encode_text(ids)
            ends = lengths(ids) - 1
            assert ends.tolist() == [2, 1, 4]
            torch.testing.assert_close(texts.trained(texts.frozen(ids), ends), whole)
            for length in (5, 6):
                short = ids[:, :length]
                torch.testing.assert_close(texts.trained(texts.frozen(short), ends), whole)


def test_the_papers_judge_is_cut_after_layer3_and_the_last_block_but_one() -> None:
    with torch.device("meta"):
        model = construct(find_model("RN101")[0])
    patterns = [pattern.replace("resblocks.1.", "resblocks.11.") for pattern in PUBLISHED]
    trained = choose_trainable(model, patterns)
    assert {name.split(".layer4")[0] for name in trained if "layer4" in name} == {"visual"}
    assert sum(name.startswith("transformer.") for name in trained) == 12
    assert (
        image_freeze_point(model).last_frozen == "layer3.22"
        and text_freeze_point(model).last_frozen == "resblocks.10"
    )
    training_mode(model)
    modes = {
        name: module.training
        for name, module in model.named_modules()
        if isinstance(module, nn.BatchNorm2d)
    }
    assert all(mode == name.startswith("visual.layer4.") for name, mode in modes.items())


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("resnet", {"trainable": PUBLISHED, "captions": 2}),
        pytest.param(
            "resnet", {"trainable": PUBLISHED, "precision": "amp_bf16"}, marks=pytest.mark.slow
        ),
        (
            "vit",
            {
                "trainable": [
                    "visual.transformer.resblocks.1.*",
                    "transformer.resblocks.1.*",
                    "ln_final.*",
                ]
            },
        ),
        ("trunk", {"trainable": ["visual.head.*", "text.*"]}),
    ],
)
def test_training_from_the_freeze_point_is_training(
    train: Train,
    squares: Path,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    more: dict,
) -> None:
    settings = {"model": model(name), "epochs": 2, "lr": 0.002, **more}
    fast = train("fast", cache="one", **settings)
    assert not list((tmp_path / "one").rglob("*.bin"))
    monkeypatch.setattr(training_inputs, "image_freeze_point", lambda model: None)
    monkeypatch.setattr(training_inputs, "text_freeze_point", lambda model: None)
    slow = train("slow", cache="two", **settings)
    start = untrained(squares, tmp_path / "start", **settings)
    assert_alike(start, slow, fast, coarse=more.get("precision") == "amp_bf16")
