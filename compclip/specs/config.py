"""The config's ``specs``, and the published values that the whole stage uses."""

from typing import Literal, Self

from pydantic import Field, model_validator

from compclip.core.settings.section import Count, Section, SeedNumber
from compclip.judge.config import SmallJudgeConfig

# Positions of a stretched text tower, and how many of the first ones are not changed, as in
# Long-CLIP.
STRETCHED_LENGTH = 248
KEPT_POSITIONS = 20
# The measures of growing captions, with their labels.
INTRINSIC_MEASURES = {"pos": "Pos", "neg": "Neg", "increment_rate": "increment rate"}


class SpecsTraining(Section):
    """The training of SPECS; the defaults are the published values."""

    epochs: Count = Field(6, ge=1)
    batch: Count = Field(100, ge=2, description="images that a GPU encodes at once")
    accumulation: Count = Field(4, ge=1, description="batches whose gradients make one step")
    lr: float = Field(1e-5, gt=0, le=100, description="learning rate after warm-up")
    warmup: float = Field(
        40,
        ge=0,
        le=1e9,
        description="warm-up steps; below 1: fraction of all steps",
    )
    precision: Literal["auto", "fp32", "amp_bf16", "amp_fp16"] = Field(
        "auto", description="auto: amp_fp16 on a GPU, as published, otherwise fp32"
    )


class LongCaptions(Section):
    """A user's long captions, instead of descriptions of the sketches."""

    examples: str = Field(
        description="training captions: ShareGPT4V's JSON, or a table with image and text"
    )
    images: str | None = Field(None, description="folder of the training images")
    increments: str = Field(
        description="test captions: a table with image, caption_id, step, text and, optionally, "
        "negative"
    )
    increment_images: str | None = Field(None, description="folder of the test images")


class SpecsConfig(Section):
    """Long captions: a CLIP is stretched, trained with the loss of SPECS, and compared with plain
    training.
    """

    seeds: list[SeedNumber] = Field(
        [0], min_length=1, description="the whole experiment runs once for each seed"
    )
    data: LongCaptions | None = Field(
        None, description="long captions; null: descriptions of the sketches"
    )
    test: Count = Field(1000, ge=1, description="sketches used only for testing")
    base: SmallJudgeConfig = Field(
        default_factory=lambda: SmallJudgeConfig.model_validate({"model": "sketch_text"}),
        description="the CLIP that is stretched; trained on short captions",
    )
    training: SpecsTraining = Field(default_factory=SpecsTraining)

    @model_validator(mode="after")
    def _can_begin(self) -> Self:
        # The base learns from short captions, which a user's long ones do not include.
        if self.data and self.base.epochs:
            raise ValueError("base.epochs must be 0 with data; use a pretrained model")
        return self
