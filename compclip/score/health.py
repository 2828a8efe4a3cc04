"""The health of a composition's judges, and what follows for the scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Health:
    """The content of each judge's health.json, by the judge's name, and ``score.health``."""

    judges: Mapping[str, Mapping[str, Any]]
    least: float

    @property
    def ratio(self) -> float | None:
        """Return the mean over the judges for which it is known; None if there is none."""
        ratios = [of["ratio"] for of in self.judges.values() if of["ratio"] is not None]
        return sum(ratios) / len(ratios) if ratios else None

    @property
    def healthy(self) -> bool | None:
        """Return whether falls may be read as the generators'; None if that is not known."""
        return None if self.ratio is None else self.ratio >= self.least

    @property
    def line(self) -> str:
        """Return what a reader of the scores must know."""
        if self.ratio is None:
            return "Judge health: not measured, because no noun of a judged held-out pair has another ranked adjective."
        if not self.healthy:
            return (
                f"Judge health {self.ratio:.2f}, below score.health {self.least:g}: falls on held-out pairs cannot be"
                " distinguished from the judge's own bias; no verdict is given."
            )
        return (
            f"Judge health {self.ratio:.2f}: the judge's adjective accuracy above chance on held-out pairs, as a"
            f" fraction of that on seen pairs, where images show what they should (required: {self.least:g})."
        )
