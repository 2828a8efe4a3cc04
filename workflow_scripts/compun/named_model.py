"""How a model is named, in the config and on the command line."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from workflow_scripts.core.section import Section


class NamedModel(Section):
    """A model that is asked: one of judge, open_clip and transformers."""

    name: str | None = Field(None, min_length=1, description="what tables call it; null: what it is")
    judge: str | None = Field(None, min_length=1, description="folder of a judge, as stage judge writes it")
    open_clip: str | None = Field(None, min_length=1, description="a model, as in judge.model")
    pretrained: str | None = Field(None, min_length=1, description="its weights: a tag of open_clip's, or a file")
    transformers: str | None = Field(None, min_length=1, description="a BLIP or an ALIGN: a folder, or the hub's name")
    revision: str | None = Field(None, min_length=1, description="a commit, branch or tag on the hub; null: main")

    @model_validator(mode="after")
    def _one(self) -> NamedModel:
        if sum(value is not None for value in (self.judge, self.open_clip, self.transformers)) != 1:
            raise ValueError("give one of judge, open_clip and transformers")
        if self.open_clip and self.pretrained is None:
            raise ValueError("open_clip without pretrained would have random weights: give a tag or a file")
        if self.pretrained and not self.open_clip:
            raise ValueError("pretrained goes with open_clip")
        if self.revision and not self.transformers:
            raise ValueError("revision goes with transformers")
        return self

    @property
    def title(self) -> str:
        """``name``, or the model and its weights; of files and folders the last part."""
        if self.name:
            return self.name
        parts = [self.judge or self.open_clip or self.transformers, self.pretrained]
        return " ".join(Path(part).name if Path(part).exists() else part for part in parts if part)

    def places(self) -> list[Path]:
        """The files and folders here that it names."""
        named = (self.judge, self.open_clip, self.pretrained, self.transformers)
        return [path for path in map(Path, filter(None, named)) if path.exists()]
