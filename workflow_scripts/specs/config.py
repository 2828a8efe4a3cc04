"""The config's ``specs``: what is published of the model and its training stands here, for all of the stage."""

from __future__ import annotations

import json
import math
from typing import Literal

from pydantic import Field, field_validator, model_validator

from workflow_scripts.clip.config import model_file
from workflow_scripts.core.section import Section
from workflow_scripts.judge.config import JudgeConfig

# Positions that a text tower is stretched to, and how many of its first ones stay as they are.
LENGTH, KEEP = 248, 20
# Weights of the loss's terms: contrastive, details, negatives.
SPECS = (1.0, 8.0, 0.8)


class Training(Section):
    """How SPECS is trained; by default as published."""

    epochs: int = Field(6, ge=1)
    batch: int = Field(100, ge=2, description="images that a GPU encodes at once")
    accumulation: int = Field(4, ge=1, description="batches whose gradients make a step")
    lr: float = Field(1e-5, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(1e-2, ge=0, allow_inf_nan=False)
    warmup: float = Field(
        40, ge=0, allow_inf_nan=False, description="steps in which the rate climbs; below 1, their share of all"
    )
    weights: tuple[float, float, float] = Field(SPECS, description="of the contrastive term, details, negatives")
    margin: float = Field(0.0, ge=0, allow_inf_nan=False, description="of both hinges, in logits; 0 lets it adapt")
    keep: int = Field(KEEP, ge=0, description="first positions, which stay as they are")
    precision: Literal["auto", "fp32", "amp_bf16", "amp_fp16"] = Field(
        "auto", description="auto: amp_fp16, as published, on a GPU, and fp32 without one"
    )

    @field_validator("weights")
    @classmethod
    def _teaching(cls, weights: tuple[float, float, float]) -> tuple[float, float, float]:
        if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
            raise ValueError("none is below 0, and one is above it")
        return weights


class LongCaptions(Section):
    """Long captions of one's own, in place of those of drawn birds."""

    examples: str = Field(description="to train on: ShareGPT4V's JSON, Parquet or WebDataset files, or a folder")
    images: str | None = Field(None, description="the folder that their paths are relative to")
    increments: str = Field(description="to test on: a table of growing captions, or sDCI's folder")
    increment_images: str | None = Field(None, description="the folder that the paths in there are relative to")


class SpecsConfig(Section):
    """Long captions: a CLIP is stretched, trained with the loss of SPECS, and compared with plain training."""

    seeds: list[int] = Field([0], min_length=1, description="of the whole experiment, once for each")
    data: LongCaptions | None = Field(None, description="null: descriptions of the sketches")
    test: int = Field(1000, ge=1, description="sketches that test, and nothing trains on")
    base: JudgeConfig = Field(
        default_factory=lambda: JudgeConfig(model="sketch_text"),
        description="the CLIP that is stretched; its epochs are on short captions",
    )
    training: Training = Field(default_factory=Training)
    bootstrap: int = Field(2000, ge=100, description="resamples of the intervals, over images")

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ValueError("each seed is a number from 0, and stands once")
        return seeds

    @model_validator(mode="after")
    def _can_begin(self) -> SpecsConfig:
        if self.data and self.base.epochs:
            raise ValueError("base.epochs must be 0 with data: take a pretrained model")
        file = model_file(self.base.model)
        cfg = json.loads(file.read_text(encoding="utf-8")) if file else {}
        if "tower" in cfg.get("model_cfg", cfg).get("text_cfg", {}):
            raise ValueError(
                f"base.model {self.base.model} has no positions to stretch: take an open_clip transformer (sketch_text)"
            )
        return self
