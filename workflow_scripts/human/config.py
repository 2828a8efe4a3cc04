"""The config's ``human``."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from workflow_scripts.core.section import NAME, Section


class Kind(Section):
    """Tasks of one kind, and what one costs.

    The published pay is 0.1 dollars for a perceptual task and 0.2 for one of correctness, on average estimated 5
    dollars an hour (appendix 1.2): 72 and 144 seconds.
    """

    tasks: int = Field(120, ge=0, description="how many, without the checks; 0 leaves the kind out")
    pay: float = Field(0.2, ge=0, description="dollars for an answer")
    seconds: float = Field(144, gt=0, description="that an answer is expected to take")


class Perceptual(Kind):
    """Tasks about looks alone."""

    pay: float = Field(0.1, ge=0, description="dollars for an answer")
    seconds: float = Field(72, gt=0, description="that an answer is expected to take")


class Site(Section):
    """A crowd-work site, laid out as Mechanical Turk."""

    base: str = Field(
        pattern=r"^https://\S+$", description="the address at which the files of the folder pictures will lie"
    )
    fee: float = Field(0.2, ge=0, description="the site's share of the pay, on top of it")
    many: int = Field(10, ge=2, description="answers to a task from which the site takes more")
    fee_many: float = Field(0.4, ge=0, description="its share from there on")
    fee_least: float = Field(0.01, ge=0, description="dollars that it takes for an answer at least")


class HumanConfig(Section):
    """What do people say? Without this section nobody is asked."""

    perceptual: Perceptual = Field(Perceptual(), description="which of two images of a prompt looks more real?")
    match: Kind = Field(Kind(), description="does the image show what its caption says?")
    caption: Kind = Field(Kind(), description="which of two captions fits the image?")
    generators: list[str] | None = Field(None, min_length=1, description="whose images are shown; null: everyone's")
    splits: list[Literal["test_seen", "test_unseen", "test_swapped"]] = Field(
        ["test_seen", "test_unseen", "test_swapped"], min_length=1, description="published: test_seen, test_swapped"
    )
    workers: int = Field(3, ge=1, description="people who answer each task")
    batch: int = Field(20, ge=1, description="tasks of a page, without the checks")
    gold: int = Field(2, ge=0, description="tasks with a known answer added to each page")
    repeats: int = Field(2, ge=0, description="tasks of a page that are asked twice")
    keep: float = Field(
        0.75, ge=0, le=1, description="share of a worker's gold tasks that must be right for the answers to count"
    )
    site: Site | None = Field(None, description="also write the files of a crowd-work site")
    answers: list[str] = Field([], description="files of collected answers: JSON lines or the site's results CSV")
    scores: dict[str, str] = Field(
        {},
        description="other scores to compare with people's answers, by name: a CSV, JSON lines or Parquet file with "
        "generator, split, image_id, caption_id, score and, where there are several, draw",
    )

    @field_validator("splits", "generators", "answers")
    @classmethod
    def _once(cls, names: list[str] | None) -> list[str] | None:
        if names and len(set(names)) < len(names):
            raise ValueError("one stands twice")
        return names

    @field_validator("scores")
    @classmethod
    def _named(cls, scores: dict[str, str]) -> dict[str, str]:
        for name in scores:
            if not re.match(NAME, name):
                raise ValueError(f"score {name!r}: a name has letters, digits, - and _ alone")
        return scores
