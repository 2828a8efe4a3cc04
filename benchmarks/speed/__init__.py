"""Speed, measured against the plain way in the same run: a file a benchmark, with ``measure() -> dict``."""

from typing import Any


def compared(ours: float, baseline: float, unit: str, n: int, **more: Any) -> dict[str, Any]:
    """Return the figures of a comparison of two speeds."""
    speeds = {"ratio": round(ours / baseline, 2), "ours": round(ours, 1), "baseline": round(baseline, 1)}
    return {**speeds, "unit": unit, "n": n, **more}
