"""The config's ``report``."""

from pydantic import Field

from compclip.core.settings.section import Count, Section


class ReportConfig(Section):
    """The tables, the figures, the page."""

    examples: Count = Field(
        16,
        ge=0,
        description="held-out pairs in the gallery of report.html for each composition",
    )
