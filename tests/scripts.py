"""Jobs for scripts that tests call in this process."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workflow_scripts.job import Job


class Inputs(SimpleNamespace):
    """Inputs that a rule leaves out are empty lists, as in a job."""

    def __getattr__(self, name: str) -> list[Path]:
        return []


def job(
    input: Mapping[str, Any],
    output: Mapping[str, Path],
    threads: int = 1,
    wildcards: Mapping[str, str] | None = None,
    **params: Any,
) -> Job:
    """Return a job with these paths and params; a section of the config may be its model."""
    return Job(
        Inputs(**input),
        SimpleNamespace(**output),
        SimpleNamespace(threads=threads, **params),
        SimpleNamespace(**wildcards or {}),
        threads,
    )
