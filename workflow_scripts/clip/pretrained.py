"""The weights that a judge starts from: open_clip's tags, OpenAI's files, this project's judges, towers of others."""

from __future__ import annotations

import hashlib
import pickle
import textwrap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.clip.weights import read_table, read_weights, rename, start
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json

import_torchvision()

import open_clip  # noqa: E402


def find_pretrained(config: ModelConfig) -> tuple[Path | None, dict[str, Any]]:
    """The file of ``pretrained``, and what is known of its training: quick_gelu, mean, std, as open_clip has them.

    Raises UserError where there is none.
    """
    if config.pretrained is None:
        return None, {}
    path = Path(config.pretrained)
    if path.is_file():
        return path, _known(config.model, path)
    tag = open_clip.get_pretrained_cfg(config.model, config.pretrained)
    if not tag:
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(config.model)) or "none"
        raise UserError(f"judge.pretrained: {config.pretrained!r} is no file, and {config.model} has the tags: {tags}")
    log.info("pretrained: fetching %s %s", config.model, config.pretrained)
    try:
        return Path(open_clip.download_pretrained(tag)), tag
    except Exception as error:  # whichever hub it was
        raise UserError(
            f"judge.pretrained: {config.pretrained!r} could not be fetched ({_first_line(error)}): "
            "try again, or give the path of a file"
        ) from error


def _known(model: str, path: Path) -> dict[str, Any]:
    """Of a judge's folder, what stands there; of OpenAI's own file, what holds for OpenAI's tag; of others nothing."""
    beside = path.with_name("model.json")
    if path.name == "weights.safetensors" and beside.is_file():
        settings = read_json(beside)
        return {**settings["preprocess_cfg"], **{k: v for k, v in settings["model_cfg"].items() if k == "quick_gelu"}}
    if not _is_torchscript(path):
        return {}
    tag = open_clip.get_pretrained_cfg(model, "openai") or {}
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # A TorchScript file is a program: only the very one that OpenAI published is opened.
    if digest not in tag.get("url", ""):
        raise UserError(
            f"{path}: a TorchScript file, and not the one that OpenAI published for {model} (its sha256 is {digest}):"
            " save its state dict as .safetensors and give that"
        )
    return tag


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def load_pretrained(model: nn.Module, path: Path, name: str) -> None:
    """Load a file of ``find_pretrained`` into an open_clip model; UserError where it is another model's, or broken."""
    try:
        if _is_torchscript(path):
            state = torch.jit.load(path, map_location="cpu").state_dict()
            for key in ("input_resolution", "context_length", "vocab_size"):
                state.pop(key, None)
            model.load_state_dict(state)
        else:
            _check_positions(model, open_clip.factory.load_state_dict(str(path)), path, name)
            open_clip.load_checkpoint(model, str(path))
    except (
        RuntimeError, SafetensorError, pickle.UnpicklingError, EOFError, KeyError, AttributeError, AssertionError,
    ) as error:  # fmt: skip
        raise UserError(f"{path}: cut short, or not the weights of {name}: {_first_line(error)}") from error


def _check_positions(model: nn.Module, state: Mapping[str, torch.Tensor], path: Path, name: str) -> None:
    """Raise UserError where the weights read longer or shorter captions: open_clip would quietly resize them."""
    own = dict(model.named_parameters())
    for key in {"positional_embedding", "text.positional_embedding"} & own.keys() & state.keys():
        if len(state[key]) != len(own[key]):
            raise UserError(
                f"{path}: reads {len(state[key])} positions of a caption where {name} has {len(own[key])}: give a"
                " model config with that text_cfg.context_length (of a judge's weights, the model.json beside them)"
            )


def start_tower(model: nn.Module, config: ModelConfig) -> list[str]:
    """Start the image tower's trunk from ``config.tower``; the names of tensors there that it has no place for."""
    tower = config.tower
    assert tower is not None
    trunk = getattr(model.visual, "trunk", None)
    name = getattr(trunk, "default_cfg", {}).get("architecture")
    if name != tower.model:
        raise UserError(f"judge.tower.model: {tower.model!r}, but the image tower of {config.model} is {name or 'own'}")
    weights = read_weights(tower.weights)
    table = read_table(tower.rename) if tower.rename else []
    names = rename(list(weights), table)
    unused = start(trunk, {names[old]: tensor for old, tensor in weights.items()}, tower.weights)
    new_to_old = {new: old for old, new in names.items()}
    return [new_to_old[new] for new in unused]


def _first_line(error: Exception) -> str:
    return textwrap.shorten(str(error), 200, placeholder=" …")
