"""The settings that say which CLIP model is built, and from which weights."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.section import Section

MODELS = ROOT / "workflow_scripts" / "clip" / "models"


def model_file(model: str) -> Path | None:
    """The model config of a path, or of a name in ``models/``; None for what is left to open_clip."""
    path = Path(model) if model.endswith(".json") else MODELS / f"{model}.json"
    return path if path.is_file() else None


class Tower(Section):
    """Start the image tower from any weights file."""

    model: str = Field(description="timm model of the image tower")
    weights: str = Field(description="a weights file, or package:file inside an installed package")
    rename: str | None = Field(None, description="YAML table of patterns from the file's names to the tower's")
    mean: tuple[float, float, float] = Field((0.485, 0.456, 0.406), description="of the pixels it was trained on")
    std: tuple[float, float, float] = Field((0.229, 0.224, 0.225), description="of the pixels it was trained on")


class ModelConfig(Section):
    """A CLIP model: an architecture, and what it starts from."""

    model: str = Field(
        "sketch",
        description="open_clip model, a file in workflow_scripts/clip/models, or a path to one, or to a judge's"
        " model.json",
    )
    pretrained: str | None = Field(
        None,
        description="open_clip pretrained tag, or a path to weights; of OpenAI's, in any form but its own .pt, the"
        " model ends in -quickgelu",
    )
    tower: Tower | None = Field(None, description="image tower from other weights")

    def files(self) -> list[str]:
        """The files, outside installed packages, that decide what the judge starts from."""
        tower = [self.tower.weights, self.tower.rename] if self.tower else []
        named = [Path(name) for name in (self.pretrained, *tower) if name]
        own = model_file(self.model)
        return [_shown(path) for path in ([own] if own else []) + named if path.is_file()]


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
