"""The config's ``compun``."""

from __future__ import annotations

import os
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from workflow_scripts.compun.address import NOT_A_VARIABLE, VARIABLE, check_without, endpoint
from workflow_scripts.compun.drawn.world import TRAININGS
from workflow_scripts.compun.named_model import NamedModel
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.section import SECRET, Section
from workflow_scripts.dataset.origins import SHA256, Names
from workflow_scripts.judge.config import JudgeConfig

# Example captions of a compound, at most: the paper's table 2 goes so far.
MOST = 7


class Compounds(Section):
    """Which compounds, and their images; by default the benchmark's own."""

    file: str | None = Field(
        "lexicons/compounds/compun.csv", min_length=1, description="text or table; null: the images' names are the list"
    )
    images: Names = Field(
        "compun",
        description="folder, archive or address, or several, the first that is there; compun: the benchmark's own",
    )
    sha256: str | None = Field(None, pattern=SHA256, description="of the archive; null: that of the first download")


class Drawn(Section):
    """Compounds that the project draws, and what the two small CLIPs learn from."""

    tested: int = Field(120, ge=6, description="compounds that are tested, a third of each kind")
    others: int = Field(60, ge=0, description="compounds that both have pictures of")
    things: int = Field(3000, ge=20, description="training pictures of one thing")
    pairs: int = Field(1000, ge=0, description="training pictures of two things")
    each: int = Field(8, ge=1, description="training pictures of a compound")


class Texts(Section):
    """Texts of each compound: from a file, and what it lacks asked of a language model; as published but for these."""

    file: str | None = Field(None, min_length=1, description="JSON, from a compound to its texts, or a table")
    count: int = Field(5, ge=1, le=20, description="of a compound, asked for")
    address: str | None = Field(
        None, description="of any server that speaks as OpenAI's does, as http://127.0.0.1:8080/v1"
    )
    model: str | None = Field(None, min_length=1, description="its name there")
    key: str = Field("OPENAI_API_KEY", description="name of the environment variable that holds the key")
    temperature: float | None = Field(0.1, ge=0, description="null: not sent")
    top_p: float | None = Field(1.0, gt=0, le=1, description="null: not sent")
    tries: int = Field(3, ge=1, description="answers to a question, until one is as it must be")
    at_once: int = Field(4, ge=1, description="requests at a time")
    per_minute: float | None = Field(None, gt=0, description="requests, at most; null: as fast as they are answered")
    timeout: float = Field(120, gt=0, description="seconds of an answer")

    @field_validator("key", mode="before")
    @classmethod
    def _is_a_name(cls, value: Any) -> Any:
        if not isinstance(value, str) or not VARIABLE.fullmatch(value):
            raise PydanticCustomError(SECRET, NOT_A_VARIABLE)
        return value

    @field_validator("address", mode="before")
    @classmethod
    def _holds_no_key(cls, value: Any) -> Any:
        try:
            if value is not None:
                endpoint(str(value))
        except UserError as error:
            raise PydanticCustomError(SECRET, str(error)) from None
        return value

    @model_validator(mode="after")
    def _from_somewhere(self) -> Texts:
        # SECRET: what is wrong is all of it, and an address may hold a key.
        if self.file is None and self.address is None:
            raise PydanticCustomError(SECRET, "give file, address, or both")
        if (self.address is None) != (self.model is None):
            raise PydanticCustomError(SECRET, "address and model go together")
        try:
            check_without(self.address or "", os.environ.get(self.key))
        except UserError as error:
            raise PydanticCustomError(SECRET, str(error)) from None
        return self


class Captions(Texts):
    """Example captions."""

    count: int = Field(5, ge=1, le=MOST, description="of a compound, asked for")


class People(Section):
    """People are asked what models are asked, by stage human's pages."""

    kinds: list[Literal["compound", "confusing"]] = Field(
        ["compound"], min_length=1, description="which picture shows it; are the three hard to tell apart"
    )
    workers: int = Field(3, ge=1, description="people who answer each task")
    batch: int = Field(40, ge=1, description="compounds of a page, without the checks")
    gold: int = Field(2, ge=0, description="tasks with a known answer added to each page")
    repeats: int = Field(2, ge=0, description="tasks of a page that are asked twice")
    pay: float = Field(0.02, ge=0, description="dollars for an answer")
    seconds: float = Field(6, gt=0, description="that an answer is expected to take")
    keep: float = Field(
        0.75, ge=0, le=1, description="share of a worker's gold tasks that must be right for the answers to count"
    )
    answers: list[str] = Field([], description="files of collected answers: JSON lines or the site's results CSV")


class CompunConfig(Section):
    """Does a model know that a cricket bat is neither? Without this section nobody asks."""

    compounds: Compounds | None = Field(None, description="null: drawn ones")
    drawn: Drawn = Field(default_factory=Drawn, description="of drawn ones alone")
    judge: JudgeConfig = Field(
        JudgeConfig(epochs=8, batch=128, captions=2, lr=0.005),
        description="of drawn ones alone: the small CLIP that learns from them, twice",
    )
    models: list[NamedModel] = Field([], description="that are asked, beside those that learn from drawn ones")
    captions: Captions | None = Field(None, description="example captions; null: of drawn ones theirs, or none")
    descriptions: Texts | None = Field(None, description="phrases to tell it by; null: of drawn ones theirs, or none")
    examples: int = Field(MOST, ge=1, le=MOST, description="example captions of a prompt, at most")
    templates: str = Field("imagenet", description="of the ensembles: imagenet (80), simple (7), a file, or none")
    bootstrap: int = Field(2000, ge=100, description="resamples of the intervals, over compounds")
    batch: int = Field(256, ge=1, description="items encoded at once; another number, other last bits")
    device: Literal["auto", "cpu", "cuda"] = "auto"
    human: People | None = Field(None, description="null: nobody is asked")

    @field_validator("models")
    @classmethod
    def _told_apart(cls, models: list[NamedModel]) -> list[NamedModel]:
        titles = [*TRAININGS, *(model.title for model in models)]
        twice = [title for title in titles if titles.count(title) > 1]
        if twice:
            raise ValueError(f"two are called {twice[0]!r}: give each a name of its own")
        return models

    @model_validator(mode="after")
    def _has_models(self) -> CompunConfig:
        if self.compounds and not self.models:
            raise PydanticCustomError(SECRET, "compounds of one's own, and no models to ask: name some")
        if not self.compounds and not self.judge.epochs:
            raise PydanticCustomError(
                SECRET, "judge.epochs must be at least 1: a model that is not trained stands in models"
            )
        return self
