"""Which source is read. Apart from ``config``, which imports every source for its settings."""

from pydantic import Field, field_validator

from compclip.core import plugins
from compclip.core.section import Section

SOURCES = "compclip.dataset.sources"


class Choice(Section):
    """Which images and captions are taken."""

    source: str = Field("sketch", validate_default=True, description="a file in compclip/dataset/sources")
    limit: int | None = Field(None, ge=1, description="take only this many images, for a first try")

    @field_validator("source")
    @classmethod
    def _known(cls, source: str) -> str:
        if source not in plugins.available(SOURCES):
            raise ValueError(f"unknown dataset source; allowed: {', '.join(plugins.available(SOURCES))}")
        return source
