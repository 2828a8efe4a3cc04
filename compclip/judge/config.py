"""The config's ``judge``."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from compclip.clip.config import ModelConfig
from compclip.core.settings import plugins
from compclip.core.settings.entries import PluginEntry
from compclip.core.settings.section import NAME, Count, SeedNumber
from compclip.judge.chooser import JUDGE_KINDS, Kind
from compclip.split.config import TrainOn


class Training(ModelConfig):
    """A CLIP fine-tuned on the captions. The defaults suit photographs and an OpenAI ResNet."""

    trainable: list[str] = Field(
        ["visual.layer4.*", "visual.attnpool.*", "text_projection", "logit_scale"],
        min_length=1,
        description="patterns of the parameters that train; ['*']: all. Layers before them are "
        "computed only once",
    )
    train_on: TrainOn
    epochs: int = Field(10, ge=0, le=100_000, description="0: no training")
    batch: Count = Field(256, ge=2, description="images per step")
    captions: Count = Field(1, ge=1, description="captions of each image per step")
    lr: float = Field(1e-4, gt=0, le=100, description="highest learning rate")
    weight_decay: float = Field(
        0.1, ge=0, le=100, description="of AdamW, except for norms, biases and the logit scale"
    )
    warmup: float = Field(
        0.05, ge=0, lt=1, description="fraction of steps in which the learning rate rises"
    )
    schedule: Literal["cosine", "constant"] = Field(
        "cosine", description="learning rate after the warm-up; cosine: falls to 0"
    )
    precision: Literal["fp32", "amp_bf16", "amp_fp16"] = Field(
        "fp32", description="amp_fp16 needs a GPU"
    )
    crop: float | None = Field(
        0.75,
        gt=0,
        le=100,
        description="half the crop's side, relative to the box's longer side; null: no crop",
    )
    augment: Literal["none", "mild"] = Field(
        "none",
        description="mild: training images change a little in light, contrast, saturation, size, "
        "place and noise, never in hue, so that judges recognize pairs in other styles",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="auto: a GPU if there is one, except for models such as sketch, which "
        "gain nothing from it",
    )
    gpus: int = Field(
        1,
        ge=1,
        le=1024,
        description="GPUs that share a batch (several machines: docs/cluster.md)",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.random and not self.epochs:
            raise ValueError(
                "epochs: 0 with pretrained: null is a judge with random weights; give pretrained, "
                "a model with its own"
                " weights (hf-hub:, local-dir:), or epochs"
            )
        if self.batch % self.gpus:
            raise ValueError(f"batch {self.batch} must be divisible by gpus {self.gpus}")
        return self


class SeedsOfTraining(Training):
    """Members of a judge that differ in their seed."""

    seeds: list[SeedNumber] | None = Field(
        None,
        min_length=1,
        description="the members, whose scores are averaged; null: two (`seed`, `seed + 1`), "
        "because a verdict needs two, or one if epochs is 0 or shared is false",
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        seeds = self.seeds or []
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"duplicate seed in {seeds}; remove one")
        if len(seeds) > 1 and self.epochs == 0:
            raise ValueError("without training (epochs: 0) all judges are equal; remove seeds")
        return self


# The name of the leading judge in tables of several, unless the config gives it one.
LEADING = "judge"


class JudgeConfig(SeedsOfTraining):
    """The leading judge, a CLIP."""

    # Not dumped: a label of a few tables is not a setting of a step.
    name: str = Field(
        LEADING, pattern=NAME, exclude=True, description="names it in tables of several judges"
    )
    shared: bool = Field(
        True,
        description="true: one judge for all compositions, trained on images that none of them "
        "judges; false: one for each, as published",
    )


class SmallJudgeConfig(Training):
    """A small CLIP trained from scratch."""

    model: str = Field("sketch", description=Training.model_fields["model"].description)
    pretrained: str | None = Field(
        None, description=Training.model_fields["pretrained"].description
    )
    trainable: list[str] = Field(
        ["*"], min_length=1, description=Training.model_fields["trainable"].description
    )
    lr: float = Field(1e-3, gt=0, le=100, description=Training.model_fields["lr"].description)


class FurtherJudge(PluginEntry):
    """A judge beside the leading one: ``{name, kind, ...}`` with the settings of its kind."""

    ENTRY: ClassVar[str] = "judge"
    KINDS: ClassVar[str] = JUDGE_KINDS
    INTERFACE: ClassVar[type[plugins.Interface]] = Kind

    kind: str = Field(description="file in compclip/judge/kinds; if absent, the name")
