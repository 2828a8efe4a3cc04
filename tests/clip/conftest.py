"""Configs of tiny models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

TINY = {
    "embed_dim": 32,
    "vision_cfg": {"tower": "conv", "image_size": 32, "widths": [8, 16], "depths": [0, 1], "features": 32},
    "text_cfg": {"tower": "words", "context_length": 12, "width": 16, "hidden": 32, "window": 3},
}
# The paper's judge in small; the parts of its appendix train.
RESNET = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": [1, 2, 1, 1], "width": 8, "head_width": 64},
    "text_cfg": {"context_length": 12, "width": 16, "heads": 2, "layers": 2},
}
PUBLISHED = [
    "visual.layer4.*", "visual.attnpool.*", "transformer.resblocks.1.*", "ln_final.*", "text_projection", "logit_scale",
]  # fmt: skip
PREPROCESS = {
    "size": [16, 16], "mode": "RGB", "mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic",
    "resize_mode": "shortest", "fill_color": 0,
}  # fmt: skip
# Without batch norms.
VIT = {**RESNET, "vision_cfg": {"image_size": 32, "layers": 2, "width": 16, "head_width": 8, "patch_size": 8}}
TRUNK = {
    "embed_dim": 16,
    "vision_cfg": {"timm_model_name": "test_resnet", "image_size": 32},
    "text_cfg": {"tower": "words", "vocab_size": 20, "context_length": 12, "width": 16, "hidden": 32, "window": 3},
}

Model = Callable[[str], str]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """Return the path of a config, for ``judge.model``, by name: resnet, vit or trunk."""

    def write(name: str) -> str:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"resnet": RESNET, "vit": VIT, "trunk": TRUNK}[name]))
        return str(path)

    return write
