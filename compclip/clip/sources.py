"""Find a judge's model config, initial weights and preprocessing: in open_clip, on the Hub, in
folders, of judges.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from compclip.clip.config import (
    CLIP_WEIGHTS,
    FOLDER,
    HUB,
    JUDGE_MODEL,
    MODELS,
    SETTINGS,
    ModelConfig,
    Preprocessing,
    folder_weights,
    has_weights,
    model_file,
    read_settings,
)
from compclip.clip.pixels import PREPROCESS
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError, require
from compclip.core.hub import hub_file
from compclip.io import read_json

# Weights trained with different values give different embeddings.
NECESSARY = ("mean", "std", "resize_mode")
# open_clip's defaults for settings that are older than these keys.
OLD_FORMAT = {"resize_mode": "shortest", "interpolation": "bicubic"}


@dataclass(frozen=True)
class Source:
    """A model's config and weights."""

    model_cfg: dict[str, Any]
    weights: Path | None  # None: random
    preprocess_cfg: dict[str, Any]  # without the size, which follows from the model
    tokenizer: (
        Path | None
    )  # folder with the files of a transformers tokenizer; None: by its name in the config
    files: list[Path]  # that determine the above


def known_preprocessing(given: Any, path: Path) -> dict[str, Any]:
    """Return the checked keys of a ``preprocess_cfg`` in open_clip's format."""
    require(isinstance(given, dict), path, f"preprocess_cfg: expected a mapping, got {given!r}")
    values = {key: given[key] for key in Preprocessing.model_fields if key in given}
    try:
        known = Preprocessing.model_validate(values).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path}: preprocess_cfg.{first['loc'][0]}: {first['msg']}, got {first['input']!r}"
        ) from error
    return {**OLD_FORMAT, **known} if {"mean", "std"} <= set(known) else known


def find_model(name: str) -> tuple[dict[str, Any], dict[str, Any], Path | None]:
    """Return a model's open_clip config, its known preprocessing, and their file, downloaded if
    necessary.
    """
    if name.startswith(HUB):
        path: Path | None = hub_file(name.removeprefix(HUB), [SETTINGS])
    else:
        path = (
            Path(name.removeprefix(FOLDER)) / SETTINGS
            if name.startswith(FOLDER)
            else model_file(name)
        )
    if path is not None:
        cfg, given = read_settings(path)
        return cfg, known_preprocessing(given, path), path
    cfg = open_clip().get_model_config(name)
    if cfg is None:
        own = ", ".join(sorted(path.stem for path in MODELS.glob("*.json")))
        raise UserError(
            f"judge.model: unknown {name!r}; use one of {own},"
            f" {HUB}owner/name, {FOLDER}path, a path to a model config (.json), or one of "
            "open_clip.list_models()"
        )
    return cfg, {}, None


def model_name(name: str) -> str:
    """Return the name of a judge with ``judge.model: name``: for a file, the name in it, or its own
    without folders.
    """
    if name.startswith(FOLDER):
        return Path(name.removeprefix(FOLDER)).resolve().name
    content = read_json(name) if name.endswith(".json") else {"name": name}
    return (
        str(content.get("name", Path(name).stem)) if isinstance(content, dict) else Path(name).stem
    )


def find_source(config: ModelConfig) -> Source:
    """Return a model's config, weights and preprocessing, downloaded if necessary."""
    model_cfg, known, settings = find_model(config.model)
    weights = tokenizer = None
    if settings and config.model.startswith(FOLDER):
        weights = folder_weights(settings.parent)
        tokenizer = settings.parent if model_cfg["text_cfg"].get("hf_tokenizer_name") else None
    elif settings and has_weights(config.model):
        # From the same commit as the settings: their folder has its name.
        weights = hub_file(config.model.removeprefix(HUB), CLIP_WEIGHTS, settings.parent.name)
    elif config.pretrained and os.path.isfile(config.pretrained):
        weights = Path(config.pretrained)
        judge = weights.with_name(JUDGE_MODEL)
        if weights.name == "weights.safetensors" and judge.is_file():
            cfg, given = read_settings(judge)
            known |= known_preprocessing(given, judge)
            model_cfg |= {key: cfg[key] for key in ("quick_gelu",) if key in cfg}
    elif config.pretrained:
        tag = find_tag("judge.pretrained: ", config.model, config.pretrained)
        weights = hub_file(*hub_place(tag))
        # The activation depends on the weights, not on the model's name.
        model_cfg |= {key: tag[key] for key in ("quick_gelu",) if key in tag}
        known |= {key: tag[key] for key in Preprocessing.model_fields if tag.get(key) is not None}
    files = [path for path in (settings, weights) if path] + [Path(file) for file in config.files()]
    preprocess_cfg = preprocessing(config, known)
    set_activation(config, model_cfg, known)
    return Source(model_cfg, weights, preprocess_cfg, tokenizer, list(dict.fromkeys(files)))


def set_activation(
    config: ModelConfig, model_cfg: dict[str, Any], known: Mapping[str, Any]
) -> None:
    """Set ``quick_gelu`` of a model config, as its name, its weights (``known``) or the config say.

    Raises:
        UserError: nothing specifies the activation of a weights file, or the config contradicts it.
    """
    # Settings of the weights specify it; open_clip's default is GELU.
    is_described = "mean" in known or has_weights(config.model)
    stated = model_cfg.get("quick_gelu", False if is_described else None)
    chosen = stated if config.quick_gelu is None else config.quick_gelu
    fault = f"{chosen}, but {config.model} was trained with {stated}"
    require(stated in (None, chosen), "judge.quick_gelu", fault, "remove this key")
    # Towers of other libraries have their own activation, and models with a tower of compclip
    # always have GELU.
    others = {"tower", "timm_model_name", "hf_model_name"} & {
        *model_cfg["vision_cfg"],
        *model_cfg["text_cfg"],
    }
    is_chosen = chosen is not None or "tower" in others or len(others) == 2
    fault = f"the activation of {config.pretrained} is unknown"
    remedy = "set quick_gelu: true for weights tuned from OpenAI's, or quick_gelu: false for GELU"
    require(is_chosen or config.random, "judge.quick_gelu", fault, remedy)
    if chosen:
        model_cfg["quick_gelu"] = chosen


def preprocessing(config: ModelConfig, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the preprocessing of a model's images, from its weights' (``known``) and the config.

    Raises:
        UserError: the weights' own preprocessing is unknown, or the config contradicts it.
    """
    given = (
        config.preprocess.model_dump(exclude_none=True, mode="json") if config.preprocess else {}
    )
    own = {key: list(value) if isinstance(value, tuple) else value for key, value in known.items()}
    for key, value in given.items():
        fault = f"{value}, but {config.model} was trained with {own.get(key)}"
        require(own.get(key, value) == value, f"judge.preprocess.{key}", fault, "remove this key")
    result = {**known, **given}
    unknown = ", ".join(f"judge.preprocess.{key}" for key in NECESSARY if key not in result)
    fault = f"unknown for {config.pretrained or config.model}"
    values = (
        "set them to its training's values (CLIP's and SigLIP's differ), and quick_gelu: true|false"
    )
    remedy = f"{values}, or set judge.model to its {SETTINGS}"
    require(not unknown or config.random, unknown, fault, remedy)
    return {**PREPROCESS, **result}


def find_tag(key: str, model: str, pretrained: str) -> dict[str, Any]:
    """Return open_clip's entry of the weights with tag ``pretrained``; UserError, with ``key``
    first, if none.
    """
    tag: dict[str, Any] = open_clip().get_pretrained_cfg(model, pretrained)
    if not tag:
        tags = ", ".join(open_clip().list_pretrained_tags_by_model(model)) or "none"
        raise UserError(
            f"{key}{pretrained!r} is neither a file nor a tag of {model}; its tags: {tags}"
        )
    return tag


def hub_place(tag: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the model on the Hub with a tag's weights (open_clip's tags all have one), and the
    names of the file.
    """
    model, file = os.path.split(tag["hf_hub"])
    return model, (file,) if file else CLIP_WEIGHTS
