"""How the config and command lines name a model."""

import os
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from workflow_scripts.clip.config import FOLDER, Preprocessing, has_weights
from workflow_scripts.core.section import Section
from workflow_scripts.judge.config import Training


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
