"""What the declarations of several stages' steps share."""

from pathlib import Path
from typing import Any

from pydantic import Field

from compclip.core.layout import Layout
from compclip.core.step import Output, Step


class OfResults(Step):
    """Base of the steps that read many artifacts by their layout."""

    results: Path = Field(description="folder of the artifacts")
    dataset: str = Field(description="name of the data set")

    @property
    def layout(self) -> Layout:
        return Layout(self.results, self.dataset, getattr(self, "composition", ""))


class MakeSectionPage(OfResults):
    """Write the page of one stage's section alone: one file that fetches nothing."""

    settings: dict[str, Any] = Field({}, description="the config's sections that the page shows (JSON)")
    page: Output = Field(description="the page (HTML)")
