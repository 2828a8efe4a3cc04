"""Check that a CLIP model and its weights exist."""

import os
from importlib.util import find_spec
from pathlib import Path

from compclip.clip.config import (
    FOLDER,
    HUB,
    HUB_WEIGHTS,
    MODELS,
    SETTINGS,
    ModelConfig,
    folder_weights,
    model_file,
)
from compclip.core.hub import check_hub_file
from workflow_scripts.workflow.findings import Findings


def check_model(key: str, config: ModelConfig, findings: Findings) -> None:
    """Check the files that ``config`` names.

    Torch is imported only to look up a tag of open_clip, which is not known without it.
    """
    name, weights = config.model, config.pretrained
    # A tag has neither a folder nor an ending.
    is_path = weights is not None and ("/" in weights or bool(Path(weights).suffix) or os.path.exists(weights))
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
    elif weights and not is_path:
        with findings.errors_of(f"{key}.pretrained"):
            from compclip.clip.sources import find_tag, hub_place

            place = hub_place(find_tag("", name, weights))
            if findings.here:
                check_hub_file(*place)
    if is_path:
        findings.exists(f"{key}.pretrained", weights)
    for part, path in config.tower.model_dump(include={"weights", "rename"}).items() if config.tower else ():
        if path and ":" not in path:
            findings.exists(f"{key}.tower.{part}", path)


def open_clip_models() -> set[str]:
    """Return the names of open_clip's models without importing it, and so torch."""
    library = find_spec("open_clip")
    places = library.submodule_search_locations if library else None
    return {path.stem for place in places or () for path in Path(place, "model_configs").glob("*.json")}
