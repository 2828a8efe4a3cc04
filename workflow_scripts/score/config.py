"""The config's ``score``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from workflow_scripts.common.section import Section


class Balance(Section):
    """How dominant swapped pairs are cut (design: Balanced)."""

    dominant: Literal[1, 2] = Field(1, description="how many pairs are cut; 2 for C-CUB color as published")
    ratio: float = Field(1.25, ge=1, description="to this times the next most frequent")


class ScoreConfig(Section):
    """Does the judge retrieve the caption?"""

    candidates: int = Field(100, ge=2, description="the own caption and its distractors")
    ties: Literal["random", "own_first"] = Field("random", description="own_first as published")
    distractors: list[Literal["original", "swapped"]] = Field(
        ["original"], min_length=1, description="of swapped captions; swapped is reported beside original"
    )
    chunks: int = Field(10, ge=1, description="of the sampled score's mean and deviation")
    bootstrap: int = Field(2000, ge=100, description="resamples of an interval")
    batch: int = Field(256, ge=1, description="items encoded at once: one fixed shape")
    balance: Balance = Field(default_factory=Balance)

    @field_validator("distractors", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        # The design's short form: `distractors: swapped` adds the rows, it does not replace them.
        return (
            {"original": ["original"], "swapped": ["original", "swapped"]}.get(value, value)
            if isinstance(value, str)
            else value
        )
