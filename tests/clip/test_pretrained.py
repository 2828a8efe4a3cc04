"""Weights of open_clip's models: OpenAI's file, another model's, truncated ones."""

import hashlib
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from workflow_scripts.clip import sources
from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.clip.model import build, construct
from workflow_scripts.clip.vision import open_clip
from workflow_scripts.core.errors import UserError

from .conftest import OPENAI as OPENAI_PIXELS
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


# The modules of the published training code, in its order, by their names here.
STEM = ["conv1", "bn1", "", "conv2", "bn2", "", "conv3", "bn3", "", "", "layer1", "layer2", "layer3"]


def as_published(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the state dict of a CLIP by the names of the published training code."""
    visual, (*first, last), tree = model.visual, model.transformer.resblocks, torch.nn.Module()
    tree.visual_frozen = torch.nn.Sequential(*(getattr(visual, n) if n else torch.nn.ReLU() for n in STEM))
    tree.attn_pool, tree.layer4 = visual.attnpool, visual.layer4
    tree.token_embedding_frozen, tree.positional_embedding_frozen = model.token_embedding, model.positional_embedding
    tree.transformer_frozen, tree.transformer_last_block = torch.nn.Sequential(*first), last
    tree.ln_final, tree.text_projection, tree.logit_scale = model.ln_final, model.text_projection, model.logit_scale
    return tree.state_dict()


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("form", ["published", "openai", "wrapped", "parallel", "traced"])
def test_state_dicts_of_openais_resnets(model: Model, tmp_path: Path, form: str, half: bool) -> None:
    """The published judges' files: names of their training code, in ``state_dict``; and other forms of the same."""
    torch.manual_seed(1)
    whole = construct({**RESNET, "quick_gelu": True})
    for parameter in [*whole.parameters(), *(b for b in whole.buffers() if b.is_floating_point())]:
        parameter.data.normal_().abs_()  # each tensor differs
    whole = whole.half().float() if half else whole
    state = as_published(whole) if form in ("published", "parallel") else whole.state_dict()
    state = {name: tensor.half() if half and tensor.is_floating_point() else tensor for name, tensor in state.items()}
    if form == "parallel":
        state = {f"module.{name}": tensor for name, tensor in state.items()}
    if form == "traced":
        state |= dict.fromkeys(("input_resolution", "context_length", "vocab_size"), torch.tensor(1))
    path = tmp_path / "C_CUB_color.pt"
    torch.save(state if form in ("openai", "traced") else {"state_dict": state, "epoch": 100}, path)
    preprocess = {**OPENAI_PIXELS, "resize_mode": "shortest"}
    built = build(ModelConfig(model=model("resnet"), pretrained=str(path), preprocess=preprocess), [], 0)
    loaded = built.model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in whole.state_dict().items())
    assert {parameter.dtype for parameter in built.model.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"visual_frozen.0.weight": torch.ones(1)}, "size mismatch for visual.conv1.weight"),
        ({"transformer_frozen.7.ln_1.bias": torch.ones(16)}, "Missing key"),
        ({"visual.conv1.weight": torch.ones(1)}, "visual_frozen.0.weight and visual.conv1.weight both become"),
        ({"text_projection": None}, 'Missing key.* "text_projection"'),
        ({"callbacks": Fraction(1)}, r"it would build fractions\.Fraction; save its state dict alone"),
    ],
)
def test_published_judges_of_other_names_or_shapes(model: Model, tmp_path: Path, wrong: dict, message: str) -> None:
    state = as_published(construct(RESNET)) | wrong
    path = tmp_path / "C_CUB_color.pt"
    torch.save({"state_dict": {name: tensor for name, tensor in state.items() if tensor is not None}}, path)
    with pytest.raises(UserError, match=rf"C_CUB_color\.pt: .*{message}") as error:
        build(ModelConfig(model=model("resnet"), pretrained=str(path), preprocess=SIGLIP), [], 0)
    assert "\n" not in str(error.value)


def test_openais_tag_is_of_quick_gelu(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert OPENAI["quick_gelu"] is True
    path = tmp_path / "fetched.safetensors"
    saved(RESNET, path)
    monkeypatch.setattr(open_clip(), "get_pretrained_cfg", lambda *_: OPENAI)
    monkeypatch.setattr(sources, "hub_file", lambda *_: path)
    built = build(ModelConfig(model=model("resnet"), pretrained="openai"), [], 0)
    assert built.model_cfg["quick_gelu"] is True
    assert tuple(built.preprocess_cfg["mean"]) == OPENAI["mean"]
