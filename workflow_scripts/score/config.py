"""The config's ``score``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from workflow_scripts.core.section import Section

# The weights of TensorFlow's network of 2015-12-05, with which FID was first computed, as torch-fidelity serves them.
INCEPTION = (
    "https://github.com/toshas/torch-fidelity/releases/download/v0.2.0/weights-inception-2015-12-05-6726825d.pth"
)


class Balance(Section):
    """How dominant swapped pairs are cut."""

    dominant: Literal[1, 2] | dict[str, Literal[1, 2]] = Field(
        1, description="how many pairs are cut (a number, or one for each composition); 2 for C-CUB color as published"
    )
    ratio: float = Field(1.25, ge=1, description="to this times the next most frequent")


class Fid(Section):
    """The Fréchet inception distance from the real images of each split."""

    images: int = Field(10_000, ge=2, description="generated images of a split, drawn by seed; or all")
    weights: str = Field(INCEPTION, min_length=1, description="of the Inception network: an address or a path")


class ScoreConfig(Section):
    """Does the judge retrieve the caption?"""

    candidates: int = Field(100, ge=2, description="the own caption and its distractors")
    ties: Literal["random", "own_first"] = Field("random", description="own_first as published")
    distractors: list[Literal["original", "swapped", "published"]] = Field(
        ["original", "swapped"],
        min_length=1,
        description="of swapped captions: original captions, swapped ones, or (published) originals of swapped ones",
    )
    chunking: Literal["even", "published"] = Field(
        "even", description="published: equal chunks, the remainder lost, their mean for the sampled score"
    )
    chunks: int = Field(10, ge=1, description="of the sampled score's mean and deviation")
    bootstrap: int = Field(2000, ge=100, description="resamples of an interval")
    batch: int = Field(256, ge=1, description="items encoded at once: one fixed shape")
    shards: int = Field(
        1, ge=1, description="jobs that share the encoding of a generator's images; no score depends on it"
    )
    balance: Balance = Field(default_factory=Balance)
    fid: Fid | None = Field(None, description="null: not computed; {} as published")

    @field_validator("distractors", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        # A short form: `distractors: swapped` adds rows, it does not replace them.
        return (
            {"original": ["original"], "swapped": ["original", "swapped"], "published": ["original", "published"]}.get(
                value, value
            )
            if isinstance(value, str)
            else value
        )
