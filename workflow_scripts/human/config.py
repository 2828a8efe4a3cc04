"""The config's ``human``."""

import re
from typing import Literal

from pydantic import Field, field_validator

from workflow_scripts.core.section import NAME, NAME_RULE, Section


class Kind(Section):
    """Tasks of one kind and their cost.

    The published pay is 0.1 dollars for a perceptual task and 0.2 for a task of correctness, estimated at 5 dollars
    an hour on average (appendix 1.2): 72 and 144 seconds.
    """

    tasks: int = Field(120, ge=0, description="number of tasks, without checks; 0 for none of this kind")
    pay: float = Field(0.2, ge=0, description="dollars for an answer")
    seconds: float = Field(144.0, gt=0, description="expected seconds for an answer")


class Perceptual(Kind):
    """Tasks about appearance alone."""

    pay: float = Field(0.1, ge=0, description="dollars for an answer")
    seconds: float = Field(72.0, gt=0, description="expected seconds for an answer")


class Site(Section):
    """A crowd-work site with Mechanical Turk's formats."""

    base: str = Field(
        pattern=r"^https://\S+$", description="https address at which the folder pictures will be published"
    )
    fee: float = Field(0.2, ge=0, description="the site's fee, as a fraction of the pay")
    many: int = Field(10, ge=2, description="answers to a task from which the higher fee applies")
    fee_many: float = Field(0.4, ge=0, description="the higher fee")
    fee_least: float = Field(0.01, ge=0, description="minimum fee for an answer, dollars")


class Kinds(Section):
    """The kinds of tasks about a scored run's images."""

    perceptual: Perceptual = Field(Perceptual(), description="which of two images of a prompt looks more real?")
    match: Kind = Field(Kind(), description="does the image show what its caption says?")
    caption: Kind = Field(Kind(), description="which of two captions fits the image?")


class Sampling(Kinds):
    """Which tasks are sampled, and what they cost."""

    splits: list[Literal["test_seen", "test_unseen", "test_swapped"]] = Field(
        ["test_seen", "test_unseen", "test_swapped"], min_length=1, description="published: test_seen, test_swapped"
    )
    workers: int = Field(3, ge=1, description="people who answer each task")
    batch: int = Field(20, ge=1, description="tasks on a page, without checks")
    gold: int = Field(2, ge=0, description="tasks with a known answer that are added to each page")
    repeats: int = Field(2, ge=0, description="tasks of each page that are asked twice")
    site: Site | None = Field(None, description="also write the files for a crowd-work site")


class Notice(Section):
    """What participants are told; shown before a page begins, and in the files for sites and Label Studio."""

    consent: str | None = Field(None, min_length=1, description="text that participants must agree to; null: none")
    withdrawal: str | None = Field(None, min_length=1, description="how to withdraw from the study; null: not shown")
    contact: str | None = Field(None, min_length=1, description="whom to ask about the study; null: not shown")

    def texts(self) -> list[str]:
        contact = f"Contact: {self.contact}" if self.contact else None
        return [text for text in (self.consent, self.withdrawal, contact) if text]


class Screening(Section):
    """Whose answers count."""

    keep: float = Field(
        0.75, ge=0, le=1, description="fraction of a worker's gold tasks that must be right for the answers to count"
    )


class HumanConfig(Sampling, Notice, Screening):
    """What do people say? Without this section nobody is asked."""

    generators: list[str] | None = Field(None, min_length=1, description="whose images are shown; null: everyone's")
    label_studio: bool = Field(False, description="also write a Label Studio project for each kind of task")
    answers: list[str] = Field(
        [], description="files of answers: JSON lines of the pages, the site's results CSV, Label Studio's JSON export"
    )
    scores: dict[str, str] = Field(
        {},
        description="other scores to compare with people's answers, by name: a CSV, JSON lines or Parquet file with "
        "generator, split, image_id, caption_id, score and, if an image has several draws, draw",
    )

    @field_validator("splits", "generators", "answers")
    @classmethod
    def _unique(cls, names: list[str] | None) -> list[str] | None:
        if names and len(set(names)) < len(names):
            raise ValueError("duplicate entry; remove one")
        return names

    @field_validator("scores")
    @classmethod
    def _named(cls, scores: dict[str, str]) -> dict[str, str]:
        for name in scores:
            if not re.fullmatch(NAME, name):
                raise ValueError(f"score {name!r}: a name has {NAME_RULE}; rename it")
        return scores
