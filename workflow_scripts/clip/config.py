"""The settings of a CLIP model: its architecture and initial weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.section import Section

MODELS = ROOT / "workflow_scripts" / "clip" / "models"


def model_file(model: str) -> Path | None:
    """Return the model config of a path, or of a name in ``models/``; None for a model of open_clip."""
    path = Path(model) if model.endswith(".json") else MODELS / f"{model}.json"
    return path if path.is_file() else None


class Tower(Section):
    """Start the image tower from any weights file."""

    model: str = Field(description="timm model of the image tower")
    weights: str = Field(description="a weights file, or package:file inside an installed package")
    rename: str | None = Field(None, description="YAML table of patterns from the file's names to the tower's")
    mean: tuple[float, float, float] = Field((0.485, 0.456, 0.406), description="mean of the pixels it was trained on")
    std: tuple[float, float, float] = Field((0.229, 0.224, 0.225), description="their standard deviation")


class ModelConfig(Section):
    """A CLIP model: an architecture and its initial weights."""

    model: str = Field(
        "RN50",
        description="open_clip model, a file in workflow_scripts/clip/models, or a path to a model config or to a"
        " judge's model.json",
    )
    pretrained: str | None = Field(
        "openai",
        description="open_clip tag, or a path to weights; null (the default for a model file) starts from random"
        " weights. For OpenAI's weights in any form but their own .pt the model's name ends in -quickgelu",
    )
    tower: Tower | None = Field(None, description="image tower from other weights")

    @model_validator(mode="before")
    @classmethod
    def _untagged(cls, values: Any) -> Any:
        """A model file has no pretrained tags."""
        if isinstance(values, dict) and model_file(str(values.get("model", cls.model_fields["model"].default))):
            return {"pretrained": None, **values}
        return values

    def files(self) -> list[str]:
        """Return the files, outside installed packages, that decide the initial weights."""
        tower = [self.tower.weights, self.tower.rename] if self.tower else []
        paths = [model_file(self.model), *(Path(name) for name in (self.pretrained, *tower) if name)]
        return [_relative(path) for path in paths if path is not None and path.is_file()]


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
