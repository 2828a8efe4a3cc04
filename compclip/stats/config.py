"""Settings of statistics that several stages share."""

from pydantic import Field

from compclip.core.section import Section


class Resampling(Section):
    """How intervals are computed."""

    bootstrap: int = Field(2000, ge=100, description="resamples of an interval")
