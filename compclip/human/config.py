"""The config's ``human``."""

from typing import Literal

from pydantic import Field

from compclip.core.settings.section import Count, Section


class Sampling(Section):
    """The tasks that are sampled from a scored run: splits, and numbers of each kind without
    checks.
    """

    splits: list[Literal["test_seen", "test_unseen", "test_swapped"]] = Field(
        ["test_seen", "test_unseen", "test_swapped"],
        min_length=1,
        description="published: test_seen, test_swapped",
    )
    perceptual: Count = Field(
        120, ge=0, description="tasks: which of a prompt's two images looks more real?"
    )
    match: Count = Field(120, ge=0, description="tasks: does the image show what its caption says?")
    caption: Count = Field(120, ge=0, description="tasks: which of two captions fits the image?")


class Study(Section):
    """The text for participants, and the answers that count."""

    consent: str | None = Field(
        None,
        min_length=1,
        description="text above each task: the study, withdrawal, whom to ask",
    )
    keep: float = Field(
        0.75,
        ge=0,
        le=1,
        description="fraction of gold tasks that a worker must answer correctly",
    )
    answers: list[str] = Field(
        [], description="CSV files of answers, such as Label Studio's exports"
    )


class HumanConfig(Sampling, Study):
    """Judgements of people. Without this section, no study is run."""

    generators: list[str] | None = Field(
        None, min_length=1, description="whose images are shown; null: all"
    )
