"""The config's ``report``."""

from __future__ import annotations

from pydantic import Field

from workflow_scripts.common.section import Section


class ReportConfig(Section):
    """The table, the figures, the page."""

    examples: int = Field(
        12,
        ge=0,
        description="captions shown for each composition, with images: one in three unseen, the others swapped",
    )
