"""The weights that a judge starts from: open_clip's tags, OpenAI's files, other judges, and towers of other models."""

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

from workflow_scripts.clip.config import ModelConfig, Tower
from workflow_scripts.clip.vision import open_clip
from workflow_scripts.clip.weights import read_table, read_weights, rename, start
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json


def find_pretrained(config: ModelConfig) -> tuple[Path | None, dict[str, Any]]:
    """Return the file of ``pretrained`` and what is known of its training: quick_gelu, mean, std as in open_clip."""
    if config.pretrained is None:
        return None, {}
    path = Path(config.pretrained)
    if path.is_file():
        return path, _known(config.model, path)
    library = open_clip()
    tag = library.get_pretrained_cfg(config.model, config.pretrained)
    if not tag:
        tags = ", ".join(library.list_pretrained_tags_by_model(config.model)) or "none"
        raise UserError(
            f"judge.pretrained: {config.pretrained!r} is neither a file nor a tag of {config.model}; its tags: {tags}"
        )
    log.info("pretrained: downloading %s %s", config.model, config.pretrained)
    try:
        return Path(library.download_pretrained(tag)), tag
    except Exception as error:  # each hub has its own
        raise UserError(
            f"judge.pretrained: {config.pretrained!r} could not be downloaded ({_first_line(error)}); "
            "try again, or give the path of a file"
        ) from error


def _known(model: str, path: Path) -> dict[str, Any]:
    """Return the settings of a judge's weights, or of OpenAI's own file; nothing for other files."""
    beside = path.with_name("model.json")
    if path.name == "weights.safetensors" and beside.is_file():
        settings = read_json(beside)
        return {**settings["preprocess_cfg"], **{k: v for k, v in settings["model_cfg"].items() if k == "quick_gelu"}}
    if not _is_torchscript(path):
        return {}
    tag = open_clip().get_pretrained_cfg(model, "openai") or {}
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # A TorchScript file is a program: only the one that OpenAI published is opened.
    if digest not in tag.get("url", ""):
        raise UserError(
            f"{path}: a TorchScript file other than the one that OpenAI published for {model} (sha256 {digest});"
            " save its state dict as .safetensors and give that"
        )
    return tag


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def load_pretrained(model: nn.Module, path: Path, name: str) -> None:
    """Load a file of ``find_pretrained`` into open_clip model ``name``; UserError if it does not fit or is broken."""
    try:
        if _is_torchscript(path):
            state = torch.jit.load(path, map_location="cpu").state_dict()
            for key in ("input_resolution", "context_length", "vocab_size"):
                state.pop(key, None)
            model.load_state_dict(state)
        else:
            _check_positions(model, open_clip().factory.load_state_dict(str(path)), path, name)
            open_clip().load_checkpoint(model, str(path))
    except (
        RuntimeError, SafetensorError, pickle.UnpicklingError, EOFError, KeyError, AttributeError, AssertionError,
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
    return textwrap.shorten(str(error), 200, placeholder=" …")
