"""Configs of tiny models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TINY = {
    "embed_dim": 32,
    "vision_cfg": {
        "tower": "conv",
        "image_size": 32,
        "widths": [8, 16],
        "depths": [0, 1],
        "features": 32,
    },
    "text_cfg": {"tower": "words", "context_length": 12, "width": 16, "hidden": 32, "window": 3},
}
# The paper's judge in small; the parts of its appendix train.
RESNET = {
    "embed_dim": 16,
    "quick_gelu": False,
    "vision_cfg": {"image_size": 32, "layers": [1, 2, 1, 1], "width": 8, "head_width": 64},
    "text_cfg": {"context_length": 12, "width": 16, "heads": 2, "layers": 2},
}
PUBLISHED = [
    "visual.layer4.*",
    "visual.attnpool.*",
    "transformer.resblocks.1.*",
    "ln_final.*",
    "text_projection",
    "logit_scale",
]
PREPROCESS = {
    "size": [16, 16],
    "mode": "RGB",
    "mean": [0.5] * 3,
    "std": [0.5] * 3,
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "fill_color": 0,
}
# Without batch norms.
VIT = {
    **RESNET,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 16, "head_width": 8, "patch_size": 8},
}
TRUNK = {
    "embed_dim": 16,
    "vision_cfg": {"timm_model_name": "test_resnet", "image_size": 32},
    "text_cfg": {
        "tower": "words",
        "vocab_size": 20,
        "context_length": 12,
        "width": 16,
        "hidden": 32,
        "window": 3,
    },
}

# What is known of OpenAI's weights.
OPENAI = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
SIGLIP = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


def clip_folder(
    folder: Path, cfg: dict[str, Any] = VIT, seed: int = 0, preprocess: Any = SIGLIP
) -> Path:
    """Return a new folder in open_clip's format, with random weights."""
    import torch
    from safetensors.torch import save_file

    from compclip.clip.model import construct

    folder.mkdir(parents=True)
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": cfg, "preprocess_cfg": preprocess})
    )
    torch.manual_seed(seed)
    state = construct(cfg).state_dict()
    save_file(
        {name: tensor.contiguous() for name, tensor in state.items()},
        folder / "open_clip_model.safetensors",
    )
    return folder


Model = Callable[[str], str]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """Return the path of a config, for ``judge.model``, by name: resnet, vit or trunk."""

    def write(name: str) -> str:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"resnet": RESNET, "vit": VIT, "trunk": TRUNK}[name]))
        return str(path)

    return write
