"""The config's ``compun``."""

from __future__ import annotations

from pydantic import Field, model_validator

from workflow_scripts.common.section import Section
from workflow_scripts.dataset.origins import SHA256, NamesOrNone


class Compounds(Section):
    """Which compounds, and their images."""

    file: str | None = Field(
        "lexicons/compounds/compun.csv", min_length=1, description="text or table; null: the images' names are the list"
    )
    images: NamesOrNone = Field(
        None,
        description="folder, archive or address, or several, the first that is there; compun: the benchmark's own",
    )
    sha256: str | None = Field(None, pattern=SHA256, description="of the archive; null: that of the first download")

    @model_validator(mode="after")
    def _some(self) -> Compounds:
        if self.file is None and self.images is None:
            raise ValueError("give file, images, or both")
        return self


class CompunConfig(Section):
    """Does a model know that a cricket bat is neither? Without this section nobody asks."""

    compounds: Compounds = Field(default_factory=Compounds, description="the nouns and their images")
