"""Where a judge starts: model configs, weights and preprocessing of open_clip, of the Hub, of folders and of judges."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from workflow_scripts.clip.config import (
    BESIDE,
    FOLDER,
    HUB,
    HUB_WEIGHTS,
    MODELS,
    SETTINGS,
    ModelConfig,
    Preprocessing,
    folder_files,
    folder_weights,
    has_weights,
    model_file,
    read_settings,
)
from workflow_scripts.clip.pixels import PREPROCESS
from workflow_scripts.clip.vision import open_clip
from workflow_scripts.clip.weights import is_torchscript
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.hub import check_answers, check_hub_file, hub_file
from workflow_scripts.core.io import read_json

# Weights trained with other values give other embeddings.
NECESSARY = ("mean", "std", "resize_mode")


@dataclass(frozen=True)
class Source:
    """A model's config and weights."""

    model_cfg: dict[str, Any]
    weights: Path | None  # None: random
    preprocess_cfg: dict[str, Any]  # without the size, which follows from the model
    tokenizer: Path | None  # folder with the files of a transformers tokenizer; None: by its name in the config
    files: list[Path]  # that decide all this


def known_preprocessing(given: Any, path: Path) -> dict[str, Any]:
    """Return what a ``preprocess_cfg`` of open_clip's format says, checked."""
    if not isinstance(given, dict):
        raise UserError(f"{path}: preprocess_cfg: expected a mapping, got {given!r}")
    values = {key: given[key] for key in Preprocessing.model_fields if given.get(key) is not None}
    for key in ("mean", "std"):
        if isinstance(values.get(key), int | float):
            values[key] = [values[key]] * 3
    if values.get("interpolation") == "random":  # of the training; open_clip evaluates with bicubic
        values["interpolation"] = "bicubic"
    try:
        known = Preprocessing.model_validate(values).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: preprocess_cfg.{where}: {first['msg']}, got {first['input']!r}") from error
    # The format is older than these keys, and open_clip reads files without them so.
    defaults = {"resize_mode": "shortest", "interpolation": "bicubic"} if {"mean", "std"} <= set(known) else {}
    fill = {"fill_color": given["fill_color"]} if "fill_color" in given else {}
    return {**defaults, **known, **fill}


def find_model(name: str) -> tuple[dict[str, Any], dict[str, Any], Path | None]:
    """Return the open_clip config of a model, its known preprocessing, and the file of both."""
    path = _settings(name) if has_weights(name) else model_file(name)
    if path is not None:
        cfg, given = read_settings(path)
        return cfg, known_preprocessing(given, path), path
    cfg = open_clip().get_model_config(name)
    if cfg is None:
        models = ", ".join(sorted(p.stem for p in MODELS.glob("*.json")))
        raise UserError(
            f"judge.model: unknown {name!r}; use one of {models}, {HUB}owner/name, {FOLDER}path, a path to a model"
            f" config (.json), or one of open_clip's {len(open_clip().list_models())} models (list them: python -m"
            " workflow_scripts.clip.model)"
        )
    return cfg, {}, None


def _settings(name: str) -> Path:
    """Return the settings of a model with its own weights; those of the Hub are downloaded."""
    if name.startswith(HUB):
        return hub_file(name.removeprefix(HUB), [SETTINGS])
    return Path(name.removeprefix(FOLDER)) / SETTINGS


def model_name(name: str) -> str:
    """Return the name of a judge with ``judge.model: name``, without folders: for a file the one in it, or its own."""
    if name.startswith(FOLDER):
        return Path(name.removeprefix(FOLDER)).resolve().name
    if not name.endswith(".json"):
        return name
    content = read_json(name)
    return str(content.get("name", Path(name).stem)) if isinstance(content, dict) else Path(name).stem


def find_source(config: ModelConfig) -> Source:
    """Return a model's config, weights and preprocessing, downloaded if necessary."""
    model_cfg, known, settings = find_model(config.model)
    weights, about = None, dict[str, Any]()
    files = [settings] if settings else []
    tokenizer = None
    if has_weights(config.model):
        assert settings is not None
        weights = _own_weights(config.model, settings)
        if config.model.startswith(FOLDER):
            files += folder_files(settings.parent)
            tokenizer = settings.parent if model_cfg["text_cfg"].get("hf_tokenizer_name") else None
    elif config.pretrained is not None:
        weights, about = find_pretrained(config.model, config.pretrained, model_cfg)
        files += [weights.with_name(name) for name in BESIDE if weights.with_name(name).is_file()]
    if weights:
        files.append(weights)
    if "quick_gelu" in about:
        # The weights, not the model's name, tell which activation they were trained with.
        model_cfg["quick_gelu"] = about["quick_gelu"]
    known |= {key: about[key] for key in (*Preprocessing.model_fields, "fill_color") if about.get(key) is not None}
    return Source(model_cfg, weights, preprocessing(config, known), tokenizer, list(dict.fromkeys(files)))


def preprocessing(config: ModelConfig, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a model's images are prepared, from what is ``known`` of its weights and from the config.

    Raises:
        UserError: the weights' own preprocessing is unknown, or the config contradicts it.
    """
    given = config.preprocess.model_dump(exclude_none=True) if config.preprocess else {}
    for key, value in given.items():
        if key in known and json_like(known[key]) != json_like(value):
            raise UserError(
                f"judge.preprocess.{key}: {json_like(value)}, but {config.model} was trained with"
                f" {json_like(known[key])}; remove this key"
            )
    result = {**known, **given}
    unknown = [f"judge.preprocess.{key}" for key in NECESSARY if key not in result]
    if unknown and not config.random:
        raise UserError(
            f"{', '.join(unknown)}: unknown for {config.pretrained or config.model}; set them to the values that it"
            f" was trained with (CLIP's and SigLIP's differ), or put its {SETTINGS} beside it"
        )
    return {**PREPROCESS, **result}


def json_like(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _own_weights(name: str, settings: Path) -> Path:
    """Return the weights of a model that has its own; without them it would be random."""
    if name.startswith(HUB):
        # Of the same commit as the settings, whose folder has its name.
        return hub_file(name.removeprefix(HUB), HUB_WEIGHTS, settings.parent.name)
    return folder_weights(settings.parent)


def find_pretrained(model: str, pretrained: str, model_cfg: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return the file of ``pretrained`` and what is known of its training: quick_gelu, mean, std as in open_clip."""
    path = Path(pretrained)
    if os.path.isfile(path):
        return path, _known(model, path, model_cfg)
    try:
        tag = find_tag(model, pretrained)
    except UserError as error:
        raise UserError(f"judge.pretrained: {error}") from error
    return _download(f"judge.pretrained: {model} {pretrained}", tag), tag


def find_tag(model: str, pretrained: str) -> dict[str, Any]:
    """Return what open_clip knows of the weights with tag ``pretrained``; raises UserError if there is no such tag."""
    library = open_clip()
    tag: dict[str, Any] = library.get_pretrained_cfg(model, pretrained)
    if not tag:
        tags = ", ".join(library.list_pretrained_tags_by_model(model)) or "none"
        raise UserError(f"{pretrained!r} is neither a file nor a tag of {model}; its tags: {tags}")
    return tag


def _download(what: str, tag: Mapping[str, Any]) -> Path:
    """Return the weights of a tag of open_clip, downloaded if necessary."""
    if place := _hub_files(tag):
        return hub_file(*place)
    check_tag(what, tag)
    try:
        return Path(open_clip().download_pretrained(tag))
    except Exception as error:  # damaged, refused, interrupted
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{what}: could not be downloaded ({reason}); try again, or give the path of a file") from error


def check_tag(what: str, tag: Mapping[str, Any]) -> None:
    """Raise UserError, without a download, if a tag's weights are not cached and their server does not answer."""
    if place := _hub_files(tag):
        check_hub_file(*place)
    elif not (Path("~/.cache/clip").expanduser() / os.path.basename(tag["url"])).is_file():
        check_answers(tag["url"], what)


def _hub_files(tag: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Return the model on the Hub that has a tag's weights, and the names that they may have."""
    if not tag.get("hf_hub"):
        return None
    library = open_clip()
    model, file = os.path.split(tag["hf_hub"])
    file = file or library.constants.HF_WEIGHTS_NAME
    return model, [*library.pretrained._get_safe_alternatives(file), file]


def _known(model: str, path: Path, model_cfg: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a judge's weights, of a file with open_clip's settings beside it, or of OpenAI's own."""
    beside = path.with_name("model.json")
    if path.name == "weights.safetensors" and beside.is_file():
        cfg, given = read_settings(beside)
        known = known_preprocessing(given, beside)
        return {**known, **{key: value for key, value in cfg.items() if key == "quick_gelu"}}
    beside = path.with_name(SETTINGS)
    if beside.is_file():
        cfg, given = read_settings(beside)
        if cfg != model_cfg:
            raise UserError(f"{beside}: another model than judge.model {model}; set judge.model to {beside}")
        return known_preprocessing(given, beside)
    if not is_torchscript(path):
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
