"""Checkpoints of the published judges, which name a CLIP's tensors by what was frozen in their training."""

import re
from collections.abc import Mapping
from pathlib import Path

import torch

from workflow_scripts.clip.weights import rename

# The frozen part of the image tower is a sequence that also counts activations and pooling.
_STEM = {0: "conv1", 1: "bn1", 3: "conv2", 4: "bn2", 6: "conv3", 7: "bn3", 10: "layer1", 11: "layer2", 12: "layer3"}
_NAMES = {
    **{rf"^visual_frozen\.{number}\.": f"visual.{name}." for number, name in _STEM.items()},
    r"^layer4\.": "visual.layer4.",
    r"^attn_pool\.": "visual.attnpool.",
    r"^(token|positional)_embedding_frozen\b": r"\1_embedding",
    r"^transformer_frozen\.": "transformer.resblocks.",
}
# In OpenAI's files, but no weights.
SETTINGS = ("input_resolution", "context_length", "vocab_size")


def openai_names(state: Mapping[str, torch.Tensor], path: Path) -> dict[str, torch.Tensor] | None:
    """Return ``path``'s state dict by OpenAI's names if it is of a published judge or of OpenAI's file, else None."""
    frozen = [int(match[1]) for name in state if (match := re.match(r"transformer_frozen\.(\d+)\.", name))]
    if not frozen:
        weights = {name: tensor for name, tensor in state.items() if name not in SETTINGS}
        return weights if len(weights) < len(state) else None
    names = {**_NAMES, r"^transformer_last_block\.": f"transformer.resblocks.{max(frozen) + 1}."}
    new_names = rename(list(state), [(re.compile(pattern), new) for pattern, new in names.items()], path)
    return {new_names[old]: tensor for old, tensor in state.items()}
