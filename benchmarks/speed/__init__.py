"""Speed, measured against the plain way in the same run: a file a benchmark, with ``measure() -> dict``."""
