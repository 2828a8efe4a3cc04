"""The config's ``judge``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from workflow_scripts.clip.config import ModelConfig


class JudgeConfig(ModelConfig):
    """A CLIP fine-tuned on these captions."""

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
