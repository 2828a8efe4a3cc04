"""The config's ``report``."""

from pydantic import Field

from compclip.core.settings.section import Count, Section


class ReportConfig(Section):
    """The tables, the figures, the page."""

    examples: Count = Field(
        24,
        ge=0,
        description="swapped captions in report.html for each composition; half as many unseen "
        "ones",
    )
