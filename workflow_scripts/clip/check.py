"""Check that a CLIP model and its weights exist."""

import os
from importlib.util import find_spec
from pathlib import Path

from workflow_scripts.clip.config import (
    FOLDER,
    HUB,
    HUB_WEIGHTS,
    MODELS,
    SETTINGS,
    ModelConfig,
    folder_weights,
    has_weights,
    model_file,
)
from workflow_scripts.core.checks import Findings
from workflow_scripts.core.hub import check_hub_file

# Endings of files of weights; what else has no folder in its name is a tag of open_clip.
WEIGHTS = (".pt", ".pth", ".bin", ".safetensors", ".npz", ".ckpt")


def check_model(key: str, config: ModelConfig, findings: Findings) -> str:
    """Check the files that ``config`` names; return a description of the model.

    Torch is imported only to look up a tag of open_clip, which is not known without it.
    """
    name, weights = config.model, config.pretrained
    if name.startswith(FOLDER):
        if findings.exists(f"{key}.model", folder := name.removeprefix(FOLDER), "folder"):
            with findings.errors_of(f"{key}.model"):
                folder_weights(Path(folder))
    elif name.startswith(HUB):
        with findings.errors_of(f"{key}.model"):
            for files in ([SETTINGS], HUB_WEIGHTS) if findings.here else ():
                check_hub_file(name.removeprefix(HUB), files)
    elif name.endswith(".json"):
        findings.exists(f"{key}.model", name)
    elif model_file(name) is None and name not in open_clip_models():
        own = ", ".join(sorted(path.stem for path in MODELS.glob("*.json")))
        findings.error(
            f"{key}.model",
            f"unknown model {name!r}; choose one of open_clip's, one of {own}, or the path of a model config",
        )
    elif weights and not _is_path(weights):
        with findings.errors_of(f"{key}.pretrained"):
            from workflow_scripts.clip.sources import check_tag, find_tag

            tag = find_tag(name, weights)
            if findings.here:
                check_tag(f"{name} {weights}", tag)
    if weights and _is_path(weights):
        findings.exists(f"{key}.pretrained", weights)
    if config.tower:
        if ":" not in config.tower.weights:
            findings.exists(f"{key}.tower.weights", config.tower.weights)
        if config.tower.rename:
            findings.exists(f"{key}.tower.rename", config.tower.rename)
    kind = "its own weights" if has_weights(name) else f"weights {weights}" if weights else "random weights"
    return f"{name}, {kind}"


def open_clip_models() -> set[str]:
    """Return the names of open_clip's models without importing it, and so torch."""
    library = find_spec("open_clip")
    places = library.submodule_search_locations if library else None
    return {path.stem for place in places or () for path in Path(place, "model_configs").glob("*.json")}


def _is_path(weights: str) -> bool:
    return "/" in weights or weights.endswith(WEIGHTS) or os.path.exists(weights)
