"""What of a run is shared."""

from __future__ import annotations

from pydantic import Field

from workflow_scripts.core.section import Section


class DvcConfig(Section):
    """DVC versions every artifact; ``make dvc`` reads this section, no rule does."""

    leave_out: list[str] = Field(
        [],
        description="patterns of artifacts, below the results, that `dvc push` leaves out; * crosses folders: "
        "*/generated/*/images, */judge",
    )
