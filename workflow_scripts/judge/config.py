"""The config's ``judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from workflow_scripts.common.code import ROOT
from workflow_scripts.common.section import Section

MODELS = ROOT / "workflow_scripts" / "judge" / "models"


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


class JudgeConfig(Section):
    """A CLIP fine-tuned on these captions."""

    model: str = Field(
        "sketch",
        description="open_clip model, a file in workflow_scripts/judge/models, or a path to one, or to a judge's"
        " model.json",
    )
    pretrained: str | None = Field(
        None,
        description="open_clip pretrained tag, or a path to weights; of OpenAI's, in any form but its own .pt, the"
        " model ends in -quickgelu",
    )
    tower: Tower | None = Field(None, description="image tower from other weights")
    trainable: list[str] = Field(["*"], min_length=1, description="patterns of the parameters that train")
    train_on: Literal["train", "half", "all"] = Field(
        "train", description="whom it learns from: train; half: the half of the test images that is not judged too; all"
    )
    epochs: int = Field(10, ge=0, description="0 uses the pretrained model as it is")
    batch: int = Field(256, ge=2, description="images of a step")
    captions: int = Field(1, ge=1, description="captions of each image in a step; CLIP's loss is averaged over them")
    lr: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.1, ge=0)
    warmup: float = Field(0.05, ge=0, lt=1, description="share of the steps in which the rate climbs")
    schedule: Literal["cosine", "constant"] = Field("cosine", description="of the rate after that; cosine falls to 0")
    flip: bool = Field(False, description="mirror half of the images; not where captions tell left from right")
    precision: Literal["fp32", "amp_bf16", "amp_fp16"] = "fp32"
    crop: float | None = Field(0.75, gt=0, description="half side of the crop, in longer sides of the bounding box")
    device: Literal["auto", "cpu", "cuda"] = "auto"
    gpus: int = Field(1, ge=1, description="GPUs of one machine that train together, each its share of a batch")
    hosts: int = Field(1, ge=1, description="machines that train together, so many GPUs each (docs/cluster.md)")

    @model_validator(mode="after")
    def _shares(self) -> JudgeConfig:
        if self.batch % self.processes:
            on = f" on {self.hosts} hosts" if self.hosts > 1 else ""
            raise ValueError(f"batch {self.batch} is no multiple of gpus {self.gpus}{on}")
        return self

    @property
    def processes(self) -> int:
        """How many train together."""
        return self.gpus * self.hosts

    def files(self) -> list[str]:
        """The files, outside installed packages, that decide what the judge starts from."""
        tower = [self.tower.weights, self.tower.rename] if self.tower else []
        named = [Path(name) for name in (self.pretrained, *tower) if name]
        own = model_file(self.model)
        return [_shown(path) for path in ([own] if own else []) + named if path.is_file()]


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
