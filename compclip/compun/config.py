"""The config's ``compun``."""

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from compclip.clip.config import FOLDER, has_weights
from compclip.core.settings.section import Count, Section
from compclip.human.config import Study
from compclip.judge.config import SmallJudgeConfig, Training

# The small CLIPs trained on drawn pictures: without and with the tested compounds.
TRAININGS = ("untaught", "taught")


class Compounds(Section):
    """The compounds and their images."""

    file: str = Field(
        "lexicons/compounds/compun.csv", min_length=1, description="table of compounds"
    )
    images: str = Field(min_length=1, description="folder of the images")


class Drawn(Section):
    """Drawn compounds, and the training pictures of the two small CLIPs."""

    tested: Count = Field(
        120, ge=6, description="tested compounds; both CLIPs train on half as many others"
    )
    things: Count = Field(3000, ge=20, description="training pictures of one thing")


class NamedModel(Section):
    """A model to ask: a judge, or a model of open_clip."""

    name: str | None = Field(
        None, min_length=1, description="name in tables; null: the model and its weights"
    )
    judge: str | None = Field(
        None, min_length=1, description="folder of a judge, as written by stage judge"
    )
    open_clip: str | None = Field(
        None, min_length=1, description="model of open_clip, as in judge.model"
    )
    pretrained: str | None = Field(
        None,
        min_length=1,
        description="its weights: a tag of open_clip, or a file; null for hf-hub: and local-dir:",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.judge is None) == (self.open_clip is None):
            raise ValueError("give judge or open_clip")
        if self.open_clip and self.pretrained is None and not has_weights(self.open_clip):
            raise ValueError(
                "open_clip without pretrained would have random weights; give a tag or a file"
            )
        if self.pretrained and not self.open_clip:
            raise ValueError("pretrained requires open_clip")
        if self.open_clip:
            # What stage judge refuses is refused here, too.
            self.judge_config()
        return self

    def judge_config(self) -> Training:
        """Return the config of a judge that is this model of open_clip, without training."""
        return Training.model_validate(
            {"model": self.open_clip, "pretrained": self.pretrained, "epochs": 0}
        )

    @property
    def title(self) -> str:
        """``name``, or the model and its weights, without the folders of paths."""
        if self.name:
            return self.name
        names = []
        for source in self._sources():
            names.append(Path(source).name if os.path.exists(source) else source)
        return " ".join(names)

    def places(self) -> list[Path]:
        """Return the local files and folders in these settings."""
        return [Path(source) for source in self._sources() if os.path.exists(source)]

    def _sources(self) -> list[str]:
        """Return the model and its weights: paths, or names of open_clip."""
        sources = (self.judge, self.open_clip, self.pretrained)
        return [source.removeprefix(FOLDER) for source in sources if source]


class CompunConfig(Section):
    """Do models understand compound nouns? The stage runs only with this section."""

    compounds: Compounds | None = Field(None, description="null: drawn compounds")
    drawn: Drawn = Field(default_factory=Drawn, description="used if the compounds are drawn")
    models: list[NamedModel] = Field(
        [], description="models to ask besides those trained on drawn compounds"
    )
    captions: str | None = Field(
        None,
        min_length=1,
        description="JSON of example captions; null: those of drawn compounds, if any",
    )
    descriptions: str | None = Field(
        None,
        min_length=1,
        description="JSON of describing phrases; null: those of drawn compounds, if any",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto: a GPU if there is one"
    )
    human: Study | None = Field(
        None, description="people are asked the same as the models; null: no study"
    )

    @field_validator("models")
    @classmethod
    def _titles_differ(cls, models: list[NamedModel]) -> list[NamedModel]:
        titles = [*TRAININGS, *(model.title for model in models)]
        duplicates = [title for title in titles if titles.count(title) > 1]
        if duplicates:
            raise ValueError(
                f"two models are called {duplicates[0]!r}; give each a name of its own"
            )
        return models

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        if self.compounds and not self.models:
            raise ValueError("compounds without models to ask; add models")
        return self

    @property
    def judge(self) -> SmallJudgeConfig:
        """The small CLIP that is trained twice if the compounds are drawn."""
        values = {"epochs": 12, "batch": 128, "captions": 6, "lr": 0.005, "device": self.device}
        return SmallJudgeConfig.model_validate(values)
