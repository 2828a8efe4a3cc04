"""Weights of others: files in three forms, and tables that rename their tensors."""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
import yaml
from safetensors import SafetensorError
from torch import nn

from workflow_scripts.core.errors import UserError


def find_weights(name: str) -> Path:
    """A path as it is; ``package:file`` as that file inside an installed package, which is not imported.

    Raises UserError where there is none.
    """
    package, colon, inside = name.partition(":")
    if not colon or Path(name).exists():
        path = Path(name)
    else:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            raise UserError(f"{name}: no installed package {package!r}: install it, or give a path")
        path = Path(spec.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise UserError(f"{name}: no such weights file ({path.name})")
    return path


def read_weights(name: str) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors or of a torch file, by name; a torch file may build nothing but tensors."""
    path = find_weights(name)
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a TorchScript program, which is refused
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # as many kinds as a pickle can be damaged in ways
        raise UserError(f"{name}: not a readable weights file ({_reason(error)})") from error
    content = content.get("state_dict", content) if isinstance(content, Mapping) else content
    if not isinstance(content, Mapping) or not all(isinstance(v, torch.Tensor) for v in content.values()):
        raise UserError(f"{name}: must hold tensors by name (a state dict)")
    return dict(content)


def _reason(error: Exception) -> str:
    """Without torch's advice to read the file by a pickle that may run anything."""
    text = " ".join(str(error).split())
    if built := re.search(r"GLOBAL (\S+) was not an allowed", text):
        return f"it would build {built[1]}: save its state dict alone"
    if "TorchScript" in text:
        return "a TorchScript program: save its state dict alone"
    if isinstance(error, SafetensorError | RuntimeError):
        return text[:200]
    return "no file of tensors by torch"


def read_table(path: str | Path) -> list[tuple[re.Pattern[str], str]]:
    """A YAML mapping of patterns to replacements, in order; UserError where it is something else."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise UserError(f"{path}: must map patterns to replacements")
        return [(re.compile(str(pattern)), str(new)) for pattern, new in content.items()]
    except (yaml.YAMLError, re.error) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error


def rename(names: list[str], table: list[tuple[re.Pattern[str], str]]) -> dict[str, str]:
    """Old names to new: every row of the table is applied to each name, in order.

    Raises UserError where two tensors would get one name.
    """
    result: dict[str, str] = {}
    for name in names:
        new = name
        for pattern, replacement in table:
            new = pattern.sub(replacement, new)
        result[name] = new
    taken: dict[str, str] = {}
    for old, new in result.items():
        if new in taken:
            raise UserError(f"rename table: {taken[new]} and {old} both become {new}")
        taken[new] = old
    return result


def start(module: nn.Module, weights: Mapping[str, torch.Tensor], where: str) -> list[str]:
    """Load ``weights`` into ``module``; returns the names of the tensors that it has no place for.

    Raises UserError for a tensor of the module that is missing, or of another shape. The batch norms' counters
    of batches, which nothing reads, may be missing.
    """
    state = module.state_dict()
    missing = [name for name in state if name not in weights and not name.endswith("num_batches_tracked")]
    if missing:
        raise UserError(
            f"{where}: {len(missing)} tensors of the tower are not in it ({_some(missing)}): the weights of another"
            " model, or `rename` is to be mended"
        )
    for name, tensor in state.items():
        if name in weights and tensor.shape != weights[name].shape:
            raise UserError(
                f"{where}: {name} is {tuple(weights[name].shape)} where the tower has {tuple(tensor.shape)}"
            )
    module.load_state_dict({name: weights.get(name, tensor) for name, tensor in state.items()})
    return sorted(set(weights) - set(state))


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
