"""The settings of a CLIP model: its architecture and initial weights."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from compclip.core.errors import UserError, require
from compclip.core.identity.code import ROOT
from compclip.core.settings.section import COMPOSITION_FIELD, Section

MODELS = ROOT / "compclip" / "clip" / "models"
# Prefixes in open_clip of models with their own weights.
HUB = "hf-hub:"
FOLDER = "local-dir:"
# The files of a model in open_clip's format: settings, weights in order of preference, and a
# tokenizer's.
SETTINGS = "open_clip_config.json"
CLIP_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
TOKENIZER_FILES = ("*.json", "*.txt", "*.model")
# The files of a judge beside its weights.
JUDGE_MODEL = "model.json"
VOCABULARY = "vocabulary.json"

CFG_KEYS = ("vision_cfg", "text_cfg")
TOWERS = (*CFG_KEYS, "multimodal_cfg")
# A model config may be a stranger's, so only these keys of each mapping in it are allowed.
# open_clip checks those of the towers, but passes the arguments in the inner mappings on to other
# libraries.
ALLOWED = {
    "model_cfg": {
        *TOWERS,
        "embed_dim",
        "custom_text",
        "quick_gelu",
        "init_logit_scale",
        "init_logit_bias",
        "nonscalar_logit_scale",
        "cast_dtype",
        "output_dict",
    },
    "tokenizer_kwargs": {"clean", "strip_sep_token", "language"},
    "norm_kwargs": {"eps"},
    "act_kwargs": {"approximate"},
}

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def model_file(model: str) -> Path | None:
    """Return the model config of a path, or of a name in ``models/``; None for any other model."""
    path = Path(model) if model.endswith(".json") else MODELS / f"{model}.json"
    return path if os.path.isfile(path) else None  # Path.is_file fails if a name is too long


def gains_from_gpu(model_cfg: Mapping[str, Any]) -> bool:
    """Return whether a GPU computes a model's steps faster than a CPU.

    It does not if both towers are this project's: they are small, and the word tower asks a GPU for
    the number of distinct windows, so that most of a step is launching and waiting.
    """
    return not all("tower" in model_cfg[key] for key in CFG_KEYS)


def has_weights(model: str) -> bool:
    """Return whether a model's name also selects its weights."""
    return model.startswith((HUB, FOLDER))


def read_settings(path: Path) -> tuple[dict[str, Any], Any]:
    """Return the open_clip model config of a file, such as a judge's ``model.json``, and its
    ``preprocess_cfg``.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = f"not valid JSON ({error})"
        if isinstance(error, OSError):
            reason = str(error.strerror)
        raise UserError(f"{path}: {reason}; give a model in open_clip's format") from error
    if not isinstance(content, dict):
        content = {}
    # open_clip's own model configs are a bare model_cfg; models on the Hub have both.
    cfg = content.get("model_cfg", content)
    is_config = isinstance(cfg, dict) and "embed_dim" in cfg
    has_towers = is_config and all(isinstance(cfg.get(key), dict) for key in CFG_KEYS)
    remedy = "it needs embed_dim, vision_cfg and text_cfg"
    require(has_towers, path, "not an open_clip model config", remedy)
    return cfg, content.get("preprocess_cfg") or {}


def check_model_cfg(cfg: Mapping[str, Any], name: str = "model_cfg") -> None:
    """Raise UserError if an open_clip model config, or a mapping in it, has a key that is not
    allowed.
    """
    allowed = ALLOWED.get(name, ())
    for key, value in cfg.items():
        # open_clip itself refuses an unknown key of a tower.
        is_allowed = name in TOWERS or key in allowed
        setting = f"model config: {name}.{key}"
        require(is_allowed, setting, "not allowed", "remove it")
        if isinstance(value, dict):
            check_model_cfg(value, key)


def folder_weights(folder: Path) -> Path:
    """Return the weights in an open_clip folder; UserError if there are none."""
    weights = [folder / name for name in CLIP_WEIGHTS if (folder / name).is_file()]
    require(weights, folder, "no weights in this folder", f"expected {' or '.join(CLIP_WEIGHTS)}")
    return weights[0]


class Tower(Section):
    """Initial weights of the image tower from any weights file."""

    model: str = Field(description="timm model of the image tower")
    weights: str = Field(description="a weights file, or package:file inside an installed package")
    rename: str | None = Field(
        None, description="YAML table from patterns of the file's names to the tower's"
    )


class Preprocessing(Section):
    """How images are prepared; needed for weights whose own preprocessing is unknown."""

    mean: tuple[Finite, Finite, Finite] | None = Field(
        None, description="mean of the pixels, from 0 to 1"
    )
    std: tuple[Positive, Positive, Positive] | None = Field(
        None, description="their standard deviation"
    )
    resize_mode: Literal["shortest", "longest", "squash"] | None = Field(
        None,
        description="shortest: crop the longer side; longest: pad the shorter side; squash: "
        "stretch",
    )
    interpolation: Literal["bicubic", "bilinear"] | None = Field(
        None, description="null: bicubic, if unknown"
    )


Pixels = Annotated[int, Field(ge=1, le=4096)]
Three = Field(min_length=3, max_length=3)


class JudgePreprocessing(Section, strict=True):
    """How a saved judge's images are prepared: open_clip's ``preprocess_cfg``, complete."""

    size: Pixels | Annotated[list[Pixels], Field(min_length=2, max_length=2)]
    mode: Literal["RGB"]
    mean: Annotated[list[Finite], Three]
    std: Annotated[list[Positive], Three]
    interpolation: Literal["bicubic", "bilinear"]
    resize_mode: Literal["shortest", "longest", "squash"]
    fill_color: int


class JudgeTexts(BaseModel, strict=True):
    """What is checked of a saved judge's ``text_cfg``; open_clip checks the rest."""

    context_length: int = Field(77, ge=2, le=100_000)
    vocab_size: int = Field(49408, ge=1)


class JudgeModel(BaseModel, strict=True):
    """What is checked of a saved judge's ``model_cfg``; open_clip checks the rest."""

    embed_dim: int = Field(ge=1)
    vision_cfg: dict[str, Any]
    text_cfg: JudgeTexts


class JudgeFile(Section, strict=True):
    """The content of a judge's ``model.json``."""

    # without control characters and line separators
    name: str = Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$")
    model_cfg: JudgeModel
    preprocess_cfg: JudgePreprocessing
    crop: float | None = Field(gt=0, le=100)


class ModelConfig(Section):
    """A CLIP model: an architecture and its initial weights."""

    model: str = Field(
        "RN50",
        description="open_clip model, hf-hub:owner/name, local-dir:path in open_clip's format, a "
        "file in compclip/clip/models, or a path of a model config or a judge's "
        "model.json",
    )
    pretrained: str | None = Field(
        "openai",
        description="open_clip tag or path of weights ({composition} is replaced); null, the "
        "default of a model file: random weights, for hf-hub: and local-dir: the "
        "model's own",
    )
    revision: str | None = Field(
        None,
        pattern=r"^[\w./-]+$",
        description="commit of an hf-hub: model; null: the newest, which may change",
    )
    quick_gelu: bool | None = Field(
        None,
        description="activation of weights whose file does not specify it: true for OpenAI's and "
        "those tuned from them, false (GELU) for others; null: true if the model's name"
        " ends in -quickgelu",
    )
    preprocess: Preprocessing | None = Field(
        None, description="for weights files that do not specify how images are prepared"
    )
    tower: Tower | None = Field(None, description="image tower from other weights")

    @model_validator(mode="before")
    @classmethod
    def _untagged(cls, values: Any) -> Any:
        """Set ``pretrained`` to null for a model file or a model with its own weights, unless it is
        given.
        """
        if isinstance(values, dict):
            model = str(values.get("model", cls.model_fields["model"].default))
            # The default, OpenAI's tag, exists only for open_clip's own models.
            if has_weights(model) or model_file(model):
                return {"pretrained": None, **values}
        return values

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.model.startswith(FOLDER):
            file: Path | None = Path(self.model.removeprefix(FOLDER)) / SETTINGS
        else:
            file = model_file(self.model)
        if file:
            read_settings(file)  # so that an unreadable file is found before the run
        if self.model.startswith(HUB):
            repository = self.model.removeprefix(HUB)
            if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
                raise ValueError(f"model {self.model!r}: expected {HUB}owner/name")
        if self.revision and not self.model.startswith(HUB):
            raise ValueError(f"revision pins {HUB} models, not {self.model}; remove it")
        if has_weights(self.model) and self.pretrained is not None:
            raise ValueError(f"pretrained must be null, because {self.model} has its own weights")
        return self

    @property
    def random(self) -> bool:
        """Whether some initial weights are random."""
        return self.pretrained is None and not has_weights(self.model)

    def of(self, composition: str) -> Self:
        """Return the settings with the composition's name in place of {composition} in
        ``pretrained``.
        """
        path = self.pretrained and self.pretrained.replace(COMPOSITION_FIELD, composition)
        return self.model_copy(update={"pretrained": path})

    def each(self, compositions: Iterable[str]) -> list[Self]:
        """Return the distinct settings of these compositions."""
        # Compositions differ only in ``pretrained``.
        settings = [self.of(composition) for composition in compositions]
        return list({model.pretrained: model for model in settings}.values())

    def files(self) -> list[str]:
        """Return the files, outside installed packages, that decide the initial weights."""
        names = [self.pretrained]
        if self.tower:
            names += [self.tower.weights, self.tower.rename]
        paths = [model_file(self.model), *(Path(name) for name in names if name)]
        if self.pretrained and os.path.isfile(self.pretrained):
            # The weights may be a judge's, whose other files decide, too.
            weights = Path(self.pretrained)
            paths += [weights.with_name(JUDGE_MODEL), weights.with_name(VOCABULARY)]
        if self.model.startswith(FOLDER):
            folder = Path(self.model.removeprefix(FOLDER))
            inside: list[Path] = []
            for pattern in (*CLIP_WEIGHTS, *TOKENIZER_FILES):
                inside += folder.glob(pattern)
            paths += sorted(inside)
        files = []
        folder = Path.cwd()
        for path in paths:
            # A tag, or a file inside a package, is not a file here.
            if path is not None and os.path.isfile(path):
                # Relative in a checkout, whose results stay valid when it is moved.
                is_below = path.is_relative_to(folder)
                files.append(str(path.relative_to(folder) if is_below else path))
        return list(dict.fromkeys(files))
