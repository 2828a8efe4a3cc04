"""Read external weights files without running their code, rename tensors, and load a model or its
image tower.
"""

import importlib.util
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from compclip.clip.config import Tower
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError, memory_for, require
from compclip.core.reading.documents import decode, parse_yaml

Table = Sequence[tuple[re.Pattern[str], str]]

# The published judges name a CLIP's tensors by what was frozen in training. The frozen part of the
# image tower is a sequence that also counts activations and pooling.
_STEM = {
    0: "conv1",
    1: "bn1",
    3: "conv2",
    4: "bn2",
    6: "conv3",
    7: "bn3",
    10: "layer1",
    11: "layer2",
    12: "layer3",
}
_PUBLISHED = {
    **{rf"^visual_frozen\.{number}\.": f"visual.{name}." for number, name in _STEM.items()},
    r"^layer4\.": "visual.layer4.",
    r"^attn_pool\.": "visual.attnpool.",
    r"^(token|positional)_embedding_frozen\b": r"\1_embedding",
    r"^transformer_frozen\.": "transformer.resblocks.",
}
# Other entries of OpenAI's files.
NOT_WEIGHTS = ("input_resolution", "context_length", "vocab_size")


def find_weights(name: str) -> Path:
    """Return the path of a weights file: a path, or ``package:file`` inside an installed package
    (not imported).
    """
    package, colon, file = name.partition(":")
    path = Path(name)
    if colon and not path.exists():  # A path may contain a colon, too.
        # find_spec would import the parents of a dotted name.
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"{name}: package {package!r} is not installed; install it, or give a path"
            )
        path = Path(spec.submodule_search_locations[0]) / file
    require(path.is_file(), name, f"no such weights file ({path.name})")
    return path


def read_weights(name: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a .safetensors or torch file by name; a torch file that builds other
    objects is refused.
    """
    path = find_weights(name)
    try:
        with memory_for(path):
            if path.suffix == ".safetensors":
                state = safetensors.torch.load_file(path)
            else:
                # weights_only, since a pickle can run any code
                state = open_clip().factory.load_state_dict(str(path), weights_only=True)
    except (OSError, UserError):
        raise
    except Exception as error:  # a damaged pickle can raise almost any exception
        remedy = "save a state dict alone, by torch.save or safetensors"
        raise UserError(
            f"{name}: not a readable weights file ({_reason(error)}); {remedy}"
        ) from error
    is_state_dict = isinstance(state, Mapping) and all(
        isinstance(value, torch.Tensor) for value in state.values()
    )
    require(is_state_dict, name, "must hold tensors by name (a state dict)")
    return dict(state)


def _reason(error: Exception) -> str:
    """Return why torch refuses a file, without its advice to load it unsafely."""
    text = " ".join(str(error).split())
    refused = re.search(r"GLOBAL (\S+) was not an allowed", text)
    if refused:
        return f"it would build {refused[1]}"
    return textwrap.shorten(f"{type(error).__name__}: {text}", 200, placeholder=" …")


def read_renames(path: str | Path) -> Table:
    """Return a YAML mapping of patterns to replacements, in order; UserError if the file is not
    one.
    """
    try:
        content = parse_yaml(decode(Path(path)))
        require(isinstance(content, dict), path, "must map patterns to replacements")
        return [(re.compile(str(pattern)), str(new)) for pattern, new in content.items()]
    except (ValueError, re.error) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error


def rename(
    names: Sequence[str], table: Table, source: str | Path = "rename table"
) -> dict[str, str]:
    """Return new names by old ones, to which every row of the table is applied in order."""
    old_names: dict[str, str] = {}
    for old in names:
        new = old
        for pattern, replacement in table:
            new = pattern.sub(replacement, new)
        # Otherwise one of the two would be lost silently.
        if new in old_names:
            raise UserError(f"{source}: {old_names[new]} and {old} both become {new}")
        old_names[new] = old
    return {old: new for new, old in old_names.items()}


def load_tensors(module: nn.Module, weights: Mapping[str, torch.Tensor], source: str) -> list[str]:
    """Load ``weights`` of file ``source`` into ``module``; return the names of unused tensors,
    sorted.

    Batch norms' counters of batches may be missing, because they are not used.
    """
    state = module.state_dict()
    missing = [
        name for name in state if name not in weights and not name.endswith("num_batches_tracked")
    ]
    if missing:
        names = ", ".join(missing[:3])
        if len(missing) > 3:
            names += ", …"
        fault = f"lacks {len(missing)} tensors of the tower ({names})"
        raise UserError(f"{source}: {fault}; use the weights of this model, or correct `rename`")
    # torch's own errors name each tensor in a line of its own, but no file.
    for name in state.keys() & weights.keys():
        shape = tuple(weights[name].shape)
        expected = tuple(state[name].shape)
        require(shape == expected, source, f"{name} is {shape}, but the tower's is {expected}")
    module.load_state_dict({name: weights.get(name, tensor) for name, tensor in state.items()})
    return sorted(set(weights) - set(state))


def native_names(state: Mapping[str, torch.Tensor], path: Path) -> dict[str, torch.Tensor] | None:
    """Return ``state`` by OpenAI's names if ``path`` is a published judge or OpenAI's file, else
    None.
    """
    matches = [re.match(r"transformer_frozen\.(\d+)\.", name) for name in state]
    frozen_blocks = [int(match[1]) for match in matches if match]
    if not frozen_blocks:
        weights = {name: tensor for name, tensor in state.items() if name not in NOT_WEIGHTS}
        return weights if len(weights) < len(state) else None
    # A published judge trains the last block alone, which follows the frozen ones.
    last_block = max(frozen_blocks) + 1
    patterns = {**_PUBLISHED, r"^transformer_last_block\.": f"transformer.resblocks.{last_block}."}
    table = [(re.compile(pattern), new) for pattern, new in patterns.items()]
    new_names = rename(list(state), table, path)
    return {new_names[old]: tensor for old, tensor in state.items()}


def load_pretrained(model: nn.Module, path: Path, name: str) -> None:
    """Load a weights file into open_clip model ``name``; UserError if it does not fit or is
    broken.
    """
    state = read_weights(str(path))
    parameters = dict(model.named_parameters())
    native = native_names(state, path)
    for key in ("positional_embedding", "text.positional_embedding"):
        if key not in state or key not in parameters:
            continue
        length = len(state[key])
        expected = len(parameters[key])
        # open_clip would silently resize them.
        if length != expected:
            raise UserError(
                f"{path}: reads {length} positions of a caption, but {name} has {expected}; give a "
                "model config with that text_cfg.context_length (for a judge's weights, the "
                "model.json next to them)"
            )
    try:
        if native:
            model.load_state_dict(native)
        else:
            open_clip().load_checkpoint(model, str(path), weights_only=True)
    except (RuntimeError, KeyError, AttributeError, AssertionError, TypeError) as error:
        raise UserError(f"{path}: not the weights of {name}: {_reason(error)}") from error


def start_tower(model: Any, name: str, tower: Tower) -> list[str]:
    """Start the trunk of the image tower of model ``name`` from ``tower``; return the names of
    unused tensors.
    """
    trunk = getattr(model.visual, "trunk", None)
    architecture = getattr(trunk, "default_cfg", {}).get("architecture", "not a timm model")
    fault = f"{tower.model!r}, but the image tower of {name} is {architecture}"
    require(architecture == tower.model, "judge.tower.model", fault)
    assert isinstance(trunk, nn.Module)
    weights = read_weights(tower.weights)
    table = read_renames(tower.rename) if tower.rename else []
    new_names = rename(list(weights), table)
    renamed = {new_names[old]: tensor for old, tensor in weights.items()}
    unused = load_tensors(trunk, renamed, tower.weights)
    # by the names in the file, which the user knows
    return [old for old in sorted(weights) if new_names[old] in unused]
