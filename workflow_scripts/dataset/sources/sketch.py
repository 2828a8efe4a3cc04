"""Birds drawn by the project's own code."""

from __future__ import annotations

from workflow_scripts.common.section import Section


class Settings(Section):
    """None."""
