"""Weights of open_clip's models: OpenAI's file, another model's, truncated ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from workflow_scripts.clip import sources
from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.clip.model import build, construct
from workflow_scripts.clip.vision import open_clip
from workflow_scripts.core.errors import UserError

from .conftest import RESNET, SIGLIP, VIT, Model

OPENAI = open_clip().get_pretrained_cfg("RN101", "openai")


def saved(cfg: dict, path: Path) -> torch.nn.Module:
    """A random model of ``cfg``, its weights in ``path``."""
    torch.manual_seed(1)
    model = construct(cfg)
    if path.suffix == ".safetensors":
        save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path)
    else:
        torch.save(model.state_dict(), path)
    return model


forms = pytest.mark.parametrize("name", ["weights.safetensors", "weights.pt"])


@forms
@pytest.mark.parametrize(
    ("cfg", "of", "message"),
    [
        ({**RESNET, "embed_dim": 8}, "resnet", r"truncated, or not the weights of .*resnet\.json: .*size mismatch"),
        (VIT, "resnet", r"truncated, or not the weights of .*resnet\.json"),
        ({**VIT, "text_cfg": {**VIT["text_cfg"], "width": 32}}, "vit", r"truncated, or not the weights of .*vit\.json"),
        # open_clip would silently resize these.
        (
            {**VIT, "text_cfg": {**VIT["text_cfg"], "context_length": 24}},
            "vit",
            r"reads 24 positions of a caption, but .*vit\.json has 12",
        ),
    ],
)
def test_weights_of_another_model(model: Model, tmp_path: Path, name: str, cfg: dict, of: str, message: str) -> None:
    saved(cfg, tmp_path / name)
    with pytest.raises(UserError, match=f"{name}: {message}"):
        build(ModelConfig(model=model(of), pretrained=str(tmp_path / name), preprocess=SIGLIP), [], 0)


@forms
def test_truncated_weights(model: Model, tmp_path: Path, name: str) -> None:
    whole = saved(RESNET, tmp_path / name)
    config = ModelConfig(model=model("resnet"), pretrained=str(tmp_path / name), preprocess=SIGLIP)
    assert torch.equal(build(config, [], 0).model.visual.conv1.weight, whole.visual.conv1.weight)
    for size in (0, 100, (tmp_path / name).stat().st_size - 9):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:size])
        with pytest.raises(UserError, match=rf"{name}: truncated, or not the weights of"):
            build(config, [], 0)


@pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated
def test_only_openais_torchscript_files_are_opened(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI's files are TorchScript, in half precision, with three tensors that are settings."""
    whole = construct(RESNET)
    for name in ("input_resolution", "context_length", "vocab_size"):
        whole.__dict__.pop(name, None)
        whole.register_buffer(name, torch.tensor(1))
    whole.attn_mask = whole._buffers.pop("attn_mask")
    inputs = torch.zeros(1, 3, 32, 32), torch.zeros(1, 12, dtype=torch.long)
    traced = torch.jit.trace(whole, inputs, check_trace=False)
    path = tmp_path / "RN101.pt"
    traced.half().save(path)
    config = ModelConfig(model=model("resnet"), pretrained=str(path))
    with pytest.raises(UserError, match=r"RN101\.pt: a TorchScript file other than the one that OpenAI published for"):
        build(config, [], 0)
    url = f"https://example.org/{hashlib.sha256(path.read_bytes()).hexdigest()}/RN101.pt"
    monkeypatch.setattr(open_clip(), "get_pretrained_cfg", lambda *_: {**OPENAI, "url": url})
    built = build(config, [], 0)
    assert built.model_cfg["quick_gelu"] is True
    assert type(built.model.transformer.resblocks[0].mlp[1]).__name__ == "QuickGELU"
    assert torch.equal(built.model.visual.conv1.weight, whole.visual.conv1.weight.half().float())


def test_openais_tag_is_of_quick_gelu(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert OPENAI["quick_gelu"] is True
    path = tmp_path / "fetched.safetensors"
    saved(RESNET, path)
    monkeypatch.setattr(open_clip(), "get_pretrained_cfg", lambda *_: OPENAI)
    monkeypatch.setattr(sources, "hub_file", lambda *_: path)
    built = build(ModelConfig(model=model("resnet"), pretrained="openai"), [], 0)
    assert built.model_cfg["quick_gelu"] is True
    assert tuple(built.preprocess_cfg["mean"]) == OPENAI["mean"]
