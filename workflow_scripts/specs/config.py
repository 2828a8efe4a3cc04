"""The config's ``specs``, and the published values that the whole stage uses."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from workflow_scripts.clip.config import model_file, read_settings
from workflow_scripts.core.section import Section
from workflow_scripts.judge.config import SmallJudgeConfig

# Positions of a stretched text tower, and how many of the first ones stay as they are.
LENGTH, KEEP = 248, 20
# Weights of the loss terms: contrastive, details, negatives.
PUBLISHED_WEIGHTS = (1.0, 8.0, 0.8)

TestImages = Annotated[int, Field(1000, ge=1, description="sketches used only for testing")]
Resamples = Annotated[int, Field(2000, ge=100, description="bootstrap resamples of images for the intervals")]


class Training(Section):
    """How SPECS is trained; the defaults are the published values."""

    epochs: int = Field(6, ge=1)
    batch: int = Field(100, ge=2, description="images that a GPU encodes at once")
    accumulation: int = Field(4, ge=1, description="batches whose gradients make one step")
    lr: float = Field(1e-5, gt=0, allow_inf_nan=False, description="learning rate after warm-up")
    weight_decay: float = Field(1e-2, ge=0, allow_inf_nan=False)
    warmup: float = Field(
        40, ge=0, allow_inf_nan=False, description="warm-up steps of the learning rate; below 1: fraction of all steps"
    )
    weights: tuple[float, float, float] = Field(
        PUBLISHED_WEIGHTS, description="weights of the contrastive term, the details and the negatives"
    )
    margin: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="margin of both hinges, in logits; 0: adaptive, as published"
    )
    keep: int = Field(KEEP, ge=0, description="number of first positions that are not trained")
    precision: Literal["auto", "fp32", "amp_bf16", "amp_fp16"] = Field(
        "auto", description="auto: amp_fp16, as published, on a GPU, fp32 on a CPU"
    )

    @field_validator("weights")
    @classmethod
    def _teaching(cls, weights: tuple[float, float, float]) -> tuple[float, float, float]:
        if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
            raise ValueError("expected three finite numbers of at least 0, one of them above 0")
        return weights


class LongCaptions(Section):
    """The user's long captions, instead of descriptions of the sketches."""

    examples: str = Field(description="training captions: ShareGPT4V's JSON, Parquet or WebDataset files, or a folder")
    images: str | None = Field(None, description="folder that the training images' paths are relative to")
    increments: str = Field(description="test captions: a table of growing captions, or sDCI's folder")
    increment_images: str | None = Field(None, description="folder that the test images' paths are relative to")


class SpecsConfig(Section):
    """Long captions: a CLIP is stretched, trained with the loss of SPECS, and compared with plain training."""

    seeds: list[int] = Field([0], min_length=1, description="seeds; the whole experiment runs once for each")
    data: LongCaptions | None = Field(None, description="long captions; null: descriptions of the sketches")
    test: TestImages
    base: SmallJudgeConfig = Field(
        default_factory=lambda: SmallJudgeConfig.model_validate({"model": "sketch_text"}),
        description="the CLIP that is stretched; its epochs are on short captions",
    )
    training: Training = Field(default_factory=Training)
    bootstrap: Resamples

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ValueError("expected distinct seeds of at least 0")
        return seeds

    @model_validator(mode="after")
    def _can_begin(self) -> Self:
        if self.data and self.base.epochs:
            raise ValueError("base.epochs must be 0 with data; use a pretrained model")
        file = model_file(self.base.model)
        if file and "tower" in read_settings(file)[0]["text_cfg"]:
            raise ValueError(
                f"base.model {self.base.model} has no positional embeddings; use an open_clip transformer (sketch_text)"
            )
        return self
