"""The config's ``compun``."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from workflow_scripts.clip.config import FOLDER, Preprocessing, has_weights
from workflow_scripts.compun.address import NOT_A_VARIABLE, VARIABLE, check_without, endpoint
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.section import SECRET, Section
from workflow_scripts.dataset.names import SHA256, Names
from workflow_scripts.human.config import Study
from workflow_scripts.judge.config import SmallJudgeConfig, Training

# The small CLIPs trained on drawn pictures: without the tested compounds, and with them.
TRAININGS = ("untaught", "taught")
# Example captions of a compound; the paper's table 2 has up to seven.
MAX_CAPTIONS = 7
Bootstrap = Annotated[int, Field(2000, ge=100, description="resamples of the intervals, over compounds")]


class Compounds(Section):
    """The compounds and their images; by default the benchmark's."""

    file: str | None = Field(
        "lexicons/compounds/compun.csv",
        min_length=1,
        description="list of compounds, a text file or a table; null: the image names are the list",
    )
    images: Names = Field(
        "compun",
        description="folder, archive or address of the images, or several, of which the first that exists is used;"
        " compun: the benchmark's own",
    )
    sha256: str | None = Field(
        None, pattern=SHA256, description="SHA-256 of the archive; null: that of the first download"
    )


class Drawn(Section):
    """Drawn compounds, and the pictures that the two small CLIPs learn from."""

    tested: int = Field(120, ge=6, description="compounds that are tested, a third of each kind")
    others: int = Field(60, ge=0, description="compounds that both CLIPs train on")
    things: int = Field(3000, ge=20, description="training pictures of one thing")
    pairs: int = Field(1000, ge=0, description="training pictures of two things")
    each: int = Field(8, ge=1, description="training pictures of a compound")


class Asking(Section):
    """How a language model is asked for texts of compounds; the defaults are as published."""

    count: int = Field(5, ge=1, le=20, description="texts of each compound")
    address: str | None = Field(
        None, description="server with OpenAI's interface, such as http://127.0.0.1:8080/v1; null: no model is asked"
    )
    model: str | None = Field(None, min_length=1, description="the model's name on the server")
    key: str = Field("OPENAI_API_KEY", description="name of the environment variable that holds the API key")
    temperature: float | None = Field(0.1, ge=0, description="null: not sent")
    top_p: float | None = Field(1.0, gt=0, le=1, description="null: not sent")
    tries: int = Field(3, ge=1, description="how often a compound is asked for until the answer is valid")
    at_once: int = Field(4, ge=1, description="concurrent requests")
    timeout: float = Field(120, gt=0, description="seconds to wait for an answer")

    @property
    def sampling(self) -> dict[str, float]:
        """The settings that are sent with each request."""
        sent = {"temperature": self.temperature, "top_p": self.top_p}
        return {name: value for name, value in sent.items() if value is not None}

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
    def _can_be_asked(self) -> Self:
        # SECRET, since the error's input is the whole section, and an address may hold a key.
        if (self.address is None) != (self.model is None):
            raise PydanticCustomError(SECRET, "give address and model together")
        try:
            check_without(self.address or "", os.environ.get(self.key))
        except UserError as error:
            raise PydanticCustomError(SECRET, str(error)) from None
        return self


class Texts(Asking):
    """Texts of each compound: from a file, and from a language model for compounds that the file lacks."""

    file: str | None = Field(None, min_length=1, description="JSON from compounds to their texts, or a table")

    @model_validator(mode="after")
    def _from_somewhere(self) -> Self:
        if self.file is None and self.address is None:
            raise PydanticCustomError(SECRET, "give file, address, or both")
        return self


class Captions(Texts):
    """Example captions."""

    count: int = Field(5, ge=1, le=MAX_CAPTIONS, description="texts of each compound")


class People(Study):
    """Ask people what the models are asked, as stage human does."""

    kinds: list[Literal["compound", "confusing"]] = Field(
        ["compound"],
        min_length=1,
        description="compound: which picture shows it; confusing: are the three hard to tell apart",
    )


class Asked(Section):
    """What models are asked, and how."""

    examples: int = Field(MAX_CAPTIONS, ge=1, le=MAX_CAPTIONS, description="maximum number of example captions")
    templates: str = Field(
        "imagenet",
        min_length=1,
        description="templates of the ensembles: imagenet (80), simple (7), a file with {} in each line, or none",
    )
    batch: int = Field(256, ge=1, description="items encoded at once; changes floating-point rounding")
    device: Literal["auto", "cpu", "cuda"] = "auto"


class NamedModel(Section):
    """A model to ask; give one of judge, open_clip and transformers."""

    name: str | None = Field(None, min_length=1, description="name in tables; null: the model and its weights")
    judge: str | None = Field(None, min_length=1, description="folder of a judge, as written by stage judge")
    open_clip: str | None = Field(None, min_length=1, description="model of open_clip, as in judge.model")
    pretrained: str | None = Field(
        None, min_length=1, description="its weights: a tag of open_clip, or a file; null for hf-hub: and local-dir:"
    )
    preprocess: Preprocessing | None = Field(None, description="as in judge.preprocess")
    transformers: str | None = Field(None, min_length=1, description="BLIP or ALIGN: a folder, or the name on the Hub")
    revision: str | None = Field(None, min_length=1, description="commit, branch or tag on the Hub; null: main")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(value is not None for value in (self.judge, self.open_clip, self.transformers)) != 1:
            raise ValueError("give one of judge, open_clip and transformers")
        if self.open_clip and self.pretrained is None and not has_weights(self.open_clip):
            raise ValueError("open_clip without pretrained would have random weights; give a tag or a file")
        if (self.pretrained or self.preprocess) and not self.open_clip:
            raise ValueError(f"{'pretrained' if self.pretrained else 'preprocess'} requires open_clip")
        if self.open_clip:
            self.judge_config()
        if self.revision and not self.transformers:
            raise ValueError("revision requires transformers")
        return self

    def judge_config(self) -> Training:
        """Return the config of the judge that is this model of open_clip as it is."""
        values = {"model": self.open_clip, "pretrained": self.pretrained, "preprocess": self.preprocess, "epochs": 0}
        return Training.model_validate(values)

    @property
    def title(self) -> str:
        """``name``, or the model and its weights, without the folders of paths."""
        if self.name:
            return self.name
        named = (self.judge or self.open_clip or self.transformers, self.pretrained)
        parts = [part.removeprefix(FOLDER) for part in named if part]
        return " ".join(Path(part).name if os.path.exists(part) else part for part in parts)

    def places(self) -> list[Path]:
        """Return the local files and folders that it names."""
        names = (self.judge, self.open_clip, self.pretrained, self.transformers)
        return [path for path in (Path(name.removeprefix(FOLDER)) for name in names if name) if os.path.exists(path)]


def check_titles(models: list[NamedModel], others: tuple[str, ...] = ()) -> list[NamedModel]:
    titles = [*others, *(model.title for model in models)]
    duplicates = [title for title in titles if titles.count(title) > 1]
    if duplicates:
        raise ValueError(f"two models are called {duplicates[0]!r}; give each a name of its own")
    return models


class CompunConfig(Asked):
    """Whether models understand compound nouns; the stage runs only with this section."""

    compounds: Compounds | None = Field(None, description="null: drawn compounds")
    drawn: Drawn = Field(default_factory=Drawn, description="used if the compounds are drawn")
    judge: SmallJudgeConfig = Field(
        SmallJudgeConfig.model_validate({"epochs": 12, "batch": 128, "captions": 6, "lr": 0.005}),
        description="the small CLIP that is trained twice if the compounds are drawn",
    )
    models: list[NamedModel] = Field([], description="models to ask besides those trained on drawn compounds")
    captions: Captions | None = Field(
        None, description="example captions; null: those of drawn compounds, otherwise none"
    )
    descriptions: Texts | None = Field(
        None, description="phrases that describe a compound; null: those of drawn compounds, otherwise none"
    )
    bootstrap: Bootstrap
    human: People | None = Field(None, description="null: no people are asked")

    @field_validator("models")
    @classmethod
    def _titles_differ(cls, models: list[NamedModel]) -> list[NamedModel]:
        return check_titles(models, TRAININGS)

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        if self.compounds and not self.models:
            raise PydanticCustomError(SECRET, "compounds without models to ask; add models")
        if not self.compounds and not self.judge.epochs:
            raise PydanticCustomError(
                SECRET, "judge.epochs must be at least 1; list a model that is not trained under models"
            )
        return self
