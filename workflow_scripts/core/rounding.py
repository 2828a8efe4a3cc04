"""Round the numbers of artifacts, so that equal work gives equal text."""

from __future__ import annotations

DECIMALS = 6


def rounded(value: float | None) -> float | None:
    """Return ``value`` with the decimals that artifacts have; None stays None."""
    return None if value is None else round(float(value), DECIMALS)
