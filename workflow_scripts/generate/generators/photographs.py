"""The real images, for test_seen and test_unseen: the upper end of what a generator can be."""

from __future__ import annotations

from workflow_scripts.common.section import Section


class Settings(Section):
    """None."""
