"""Load the weights that a judge starts from: of open_clip and OpenAI, and towers of other models."""

import pickle
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from workflow_scripts.clip.config import Tower
from workflow_scripts.clip.published import openai_names
from workflow_scripts.clip.vision import open_clip
from workflow_scripts.clip.weights import is_torchscript, read_table, read_weights, rename, start, why_unreadable
from workflow_scripts.core.errors import UserError


def load_pretrained(model: nn.Module, path: Path, name: str) -> None:
    """Load a weights file into open_clip model ``name``; UserError if it does not fit or is broken."""
    try:
        if is_torchscript(path):
            state = torch.jit.load(path, map_location="cpu").state_dict()
            model.load_state_dict(openai_names(state, path) or state)
        else:
            state = open_clip().factory.load_state_dict(str(path))
            native = openai_names(state, path)
            _check_positions(model, native or state, path, name)
            if native:
                model.load_state_dict(native)
            else:
                open_clip().load_checkpoint(model, str(path))
    except (
        RuntimeError, SafetensorError, pickle.UnpicklingError, EOFError, KeyError, AttributeError, AssertionError,
        TypeError,
    ) as error:  # fmt: skip
        raise UserError(f"{path}: truncated, or not the weights of {name}: {_first_line(error)}") from error


def _check_positions(model: nn.Module, state: Mapping[str, torch.Tensor], path: Path, name: str) -> None:
    """Raise UserError if the weights read longer or shorter captions, which open_clip would silently resize."""
    own = dict(model.named_parameters())
    for key in {"positional_embedding", "text.positional_embedding"} & own.keys() & state.keys():
        if len(state[key]) != len(own[key]):
            raise UserError(
                f"{path}: reads {len(state[key])} positions of a caption, but {name} has {len(own[key])}; give a"
                " model config with that text_cfg.context_length (for a judge's weights, the model.json next to them)"
            )


def start_tower(model: Any, name: str, tower: Tower) -> list[str]:
    """Start the trunk of the image tower of model ``name`` from ``tower``; return the names of unused tensors."""
    trunk = getattr(model.visual, "trunk", None)
    architecture = getattr(trunk, "default_cfg", {}).get("architecture")
    if trunk is None or architecture != tower.model:
        actual = architecture or "not a timm model"
        raise UserError(f"judge.tower.model: {tower.model!r}, but the image tower of {name} is {actual}")
    weights = read_weights(tower.weights)
    table = read_table(tower.rename) if tower.rename else []
    names = rename(list(weights), table)
    unused = start(trunk, {names[old]: tensor for old, tensor in weights.items()}, tower.weights)
    new_to_old = {new: old for old, new in names.items()}
    return [new_to_old[new] for new in unused]


def _first_line(error: Exception) -> str:
    if isinstance(error, pickle.UnpicklingError):
        return why_unreadable(error)
    return textwrap.shorten(str(error), 200, placeholder=" …")
