"""Weights files in three forms, and tables that rename their tensors."""

import importlib.util
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from workflow_scripts.core.documents import decode, parse_yaml
from workflow_scripts.core.errors import UserError


def find_weights(name: str) -> Path:
    """Return the path of a weights file: a path, or ``package:file`` inside an installed package (not imported)."""
    package, colon, inside = name.partition(":")
    if not colon or Path(name).exists():
        path = Path(name)
    else:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            raise UserError(f"{name}: package {package!r} is not installed; install it, or give a path")
        path = Path(spec.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise UserError(f"{name}: no such weights file ({path.name})")
    return path


def read_weights(name: str) -> dict[str, torch.Tensor]:
    """Read the tensors of a .safetensors or a torch file by name; a torch file may build only tensors."""
    path = find_weights(name)
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a TorchScript program, which is refused
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a damaged pickle raises almost anything
        raise UserError(f"{name}: not a readable weights file ({why_unreadable(error)})") from error
    content = content.get("state_dict", content) if isinstance(content, Mapping) else content
    if not isinstance(content, Mapping) or not all(isinstance(v, torch.Tensor) for v in content.values()):
        raise UserError(f"{name}: must hold tensors by name (a state dict)")
    return dict(content)


def is_torchscript(path: Path) -> bool:
    """Return whether a file is a program, as OpenAI's weights are."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def why_unreadable(error: Exception) -> str:
    """Return why a file is refused, without torch's advice to load it unsafely."""
    text = " ".join(str(error).split())
    if built := re.search(r"GLOBAL (\S+) was not an allowed", text):
        return f"it would build {built[1]}; save its state dict alone"
    if "TorchScript" in text:
        return "a TorchScript program; save its state dict alone"
    if isinstance(error, SafetensorError | RuntimeError):
        return text[:200]
    return "not a torch file of tensors by name"


def read_table(path: str | Path) -> list[tuple[re.Pattern[str], str]]:
    """Read a YAML mapping of patterns to replacements, in order; UserError for anything else."""
    try:
        content = parse_yaml(decode(Path(path)))
        if not isinstance(content, dict):
            raise UserError(f"{path}: must map patterns to replacements")
        return [(re.compile(str(pattern)), str(new)) for pattern, new in content.items()]
    except (ValueError, re.error) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error


def rename(
    names: list[str], table: list[tuple[re.Pattern[str], str]], where: str | Path = "rename table"
) -> dict[str, str]:
    """Map old names to new: every row of the table is applied to each name, in order."""
    new_names: dict[str, str] = {}
    old_of: dict[str, str] = {}
    for old in names:
        new = old
        for pattern, replacement in table:
            new = pattern.sub(replacement, new)
        if new in old_of:
            raise UserError(f"{where}: {old_of[new]} and {old} both become {new}")
        new_names[old], old_of[new] = new, old
    return new_names


def start(module: nn.Module, weights: Mapping[str, torch.Tensor], where: str) -> list[str]:
    """Load ``weights`` of file ``where`` into ``module``; return the names of unused tensors, sorted.

    The batch norms' counters of batches may be missing, because nothing reads them.
    """
    state = module.state_dict()
    missing = [name for name in state if name not in weights and not name.endswith("num_batches_tracked")]
    if missing:
        raise UserError(
            f"{where}: lacks {len(missing)} tensors of the tower ({', '.join(missing[:3])}"
            f"{', …' if len(missing) > 3 else ''}); use the weights of this model, or correct `rename`"
        )
    for name, tensor in state.items():
        if name in weights and tensor.shape != weights[name].shape:
            raise UserError(
                f"{where}: {name} is {tuple(weights[name].shape)}, but the tower's is {tuple(tensor.shape)}"
            )
    module.load_state_dict({name: weights.get(name, tensor) for name, tensor in state.items()})
    return sorted(set(weights) - set(state))
