"""Find a judge's model config, initial weights and preprocessing: in open_clip, on the Hub, in
folders, of judges.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError, require
from compclip.core.reading.hub import hub_file

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
    # Folder with the files of a transformers tokenizer; None: by its name in the config.
    tokenizer: Path | None
    files: list[Path]  # that determine the above


class FoundModel(NamedTuple):
    """A model's open_clip config, before its weights are known."""

    model_cfg: dict[str, Any]
    preprocess_cfg: dict[str, Any]  # without unknown keys
    file: Path | None  # None: a model of open_clip


class _Weights(NamedTuple):
    """A weights file, and what is known of its training."""

    file: Path
    model_cfg: dict[str, Any]  # ``quick_gelu``, or empty
    preprocess_cfg: dict[str, Any]


def known_preprocessing(cfg: Any, path: Path) -> dict[str, Any]:
    """Return the checked keys of a ``preprocess_cfg`` in open_clip's format."""
    require(isinstance(cfg, dict), path, f"preprocess_cfg: expected a mapping, got {cfg!r}")
    values = {key: cfg[key] for key in Preprocessing.model_fields if key in cfg}
    try:
        checked = Preprocessing.model_validate(values).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path}: preprocess_cfg.{first['loc'][0]}: {first['msg']}, got {first['input']!r}"
        ) from error
    # A file with mean and std describes the preprocessing, perhaps in the older format.
    return {**OLD_FORMAT, **checked} if {"mean", "std"} <= checked.keys() else checked


def find_model(name: str, revision: str | None = None) -> FoundModel:
    """Return a model's open_clip config, its known preprocessing, and their file, downloaded if
    necessary.

    Args:
        revision: the commit of a model on the Hub; None: the newest.
    """
    if name.startswith(HUB):
        file: Path | None = hub_file(name.removeprefix(HUB), [SETTINGS], revision)
    elif name.startswith(FOLDER):
        file = Path(name.removeprefix(FOLDER)) / SETTINGS
    else:
        file = model_file(name)
    if file is not None:
        model_cfg, preprocess_cfg = read_settings(file)
        return FoundModel(model_cfg, known_preprocessing(preprocess_cfg, file), file)
    # A model of open_clip itself, which has no file here.
    cfg = open_clip().get_model_config(name)
    if cfg is None:
        bundled = ", ".join(sorted(path.stem for path in MODELS.glob("*.json")))
        raise UserError(
            f"judge.model: unknown {name!r}; use one of {bundled},"
            f" {HUB}owner/name, {FOLDER}path, a path to a model config (.json), or one of "
            "open_clip.list_models()"
        )
    return FoundModel(cfg, {}, None)


def model_name(name: str) -> str:
    """Return the name of a judge with ``judge.model: name``: for a file, the name in it, or its own
    without folders.
    """
    if name.startswith(FOLDER):
        return Path(name.removeprefix(FOLDER)).resolve().name
    if not name.endswith(".json"):
        return name
    content = read_json(name)
    if isinstance(content, dict) and "name" in content:
        return str(content["name"])
    return Path(name).stem


def find_source(config: ModelConfig) -> Source:
    """Return a model's config, weights and preprocessing, downloaded if necessary."""
    model_cfg, preprocess_cfg, settings = find_model(config.model, config.revision)
    weights = tokenizer = None
    if settings and config.model.startswith(FOLDER):
        weights = folder_weights(settings.parent)
        if model_cfg["text_cfg"].get("hf_tokenizer_name"):
            tokenizer = settings.parent
    elif settings and has_weights(config.model):
        # From the same commit as the settings: their folder has its name.
        commit = settings.parent.name
        weights = hub_file(config.model.removeprefix(HUB), CLIP_WEIGHTS, commit)
    elif config.pretrained:
        if os.path.isfile(config.pretrained):
            described = _file_weights(Path(config.pretrained))
        else:
            described = _tag_weights(config.model, config.pretrained)
        weights = described.file
        # Activation and preprocessing depend on the weights, not on the model's name.
        model_cfg |= described.model_cfg
        preprocess_cfg |= described.preprocess_cfg
    files = [path for path in (settings, weights) if path]
    # These repeat some of the paths above.
    files += [Path(file) for file in config.files()]
    complete = preprocessing(config, preprocess_cfg)
    set_activation(config, model_cfg, preprocess_cfg)
    return Source(model_cfg, weights, complete, tokenizer, list(dict.fromkeys(files)))


def _file_weights(file: Path) -> _Weights:
    """Return a weights file; if it is a judge's, as the judge's settings describe it."""
    settings = file.with_name(JUDGE_MODEL)
    if file.name != "weights.safetensors" or not settings.is_file():
        return _Weights(file, {}, {})
    model_cfg, preprocess_cfg = read_settings(settings)
    return _Weights(file, _activation(model_cfg), known_preprocessing(preprocess_cfg, settings))


def _tag_weights(model: str, pretrained: str) -> _Weights:
    """Return the weights of an open_clip tag, downloaded if necessary."""
    tag = find_tag("judge.pretrained: ", model, pretrained)
    file = hub_file(*hub_place(tag))
    keys = [key for key in Preprocessing.model_fields if tag.get(key) is not None]
    return _Weights(file, _activation(tag), {key: tag[key] for key in keys})


def _activation(cfg: Mapping[str, Any]) -> dict[str, Any]:
    return {"quick_gelu": cfg["quick_gelu"]} if "quick_gelu" in cfg else {}


def set_activation(
    config: ModelConfig, model_cfg: dict[str, Any], preprocess_cfg: Mapping[str, Any]
) -> None:
    """Set ``quick_gelu`` of a model config, as its name, its weights' ``preprocess_cfg`` or the
    config say.

    Raises:
        UserError: nothing specifies the activation of a weights file, or the config contradicts it.
    """
    # Settings of the weights specify it; open_clip's default is GELU.
    is_described = "mean" in preprocess_cfg or has_weights(config.model)
    trained_with = model_cfg.get("quick_gelu", False if is_described else None)
    chosen = config.quick_gelu
    if chosen is None:
        chosen = trained_with
    fault = f"{chosen}, but {config.model} was trained with {trained_with}"
    require(trained_with in (None, chosen), "judge.quick_gelu", fault, "remove this key")
    # Towers of other libraries have their own activation, and models with a tower of compclip
    # always have GELU.
    keys = {*model_cfg["vision_cfg"], *model_cfg["text_cfg"]}
    foreign = keys & {"timm_model_name", "hf_model_name"}
    is_chosen = chosen is not None or "tower" in keys or len(foreign) == 2
    fault = f"the activation of {config.pretrained} is unknown"
    remedy = "set quick_gelu: true for weights tuned from OpenAI's, or quick_gelu: false for GELU"
    require(is_chosen or config.random, "judge.quick_gelu", fault, remedy)
    if chosen:
        model_cfg["quick_gelu"] = chosen


def preprocessing(config: ModelConfig, preprocess_cfg: Mapping[str, Any]) -> dict[str, Any]:
    """Return the preprocessing of a model's images, from its weights' ``preprocess_cfg`` and the
    config.

    Raises:
        UserError: the weights' own preprocessing is unknown, or the config contradicts it.
    """
    configured = {}
    if config.preprocess:
        configured = config.preprocess.model_dump(exclude_none=True, mode="json")
    for key, value in configured.items():
        trained_with = preprocess_cfg.get(key, value)
        # A tag has tuples where JSON has lists.
        if isinstance(trained_with, tuple):
            trained_with = list(trained_with)
        fault = f"{value}, but {config.model} was trained with {trained_with}"
        require(trained_with == value, f"judge.preprocess.{key}", fault, "remove this key")
    result = {**preprocess_cfg, **configured}
    unknown = [f"judge.preprocess.{key}" for key in NECESSARY if key not in result]
    if unknown and not config.random:
        raise UserError(
            f"{', '.join(unknown)}: unknown for {config.pretrained or config.model}; set them to "
            "its training's values (CLIP's and SigLIP's differ), and quick_gelu: true|false, or "
            f"set judge.model to its {SETTINGS}"
        )
    return {**PREPROCESS, **result}


def find_tag(key: str, model: str, pretrained: str) -> dict[str, Any]:
    """Return open_clip's entry of the weights with tag ``pretrained``; UserError, with ``key``
    first, if none.
    """
    library = open_clip()
    tag: dict[str, Any] = library.get_pretrained_cfg(model, pretrained)
    if not tag:
        tags = library.list_pretrained_tags_by_model(model)
        names = ", ".join(tags) or "none"
        raise UserError(
            f"{key}{pretrained!r} is neither a file nor a tag of {model}; its tags: {names}"
        )
    return tag


def hub_place(tag: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the model on the Hub with a tag's weights (open_clip's tags all have one), and the
    names of the file.
    """
    # owner/name/file, or owner/name/ for a file of the usual name
    model, file = os.path.split(tag["hf_hub"])
    return model, (file,) if file else CLIP_WEIGHTS
