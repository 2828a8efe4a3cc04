"""Read a job's inputs that are lexicons."""

from typing import Any

from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job


def read_lexicons(job: Job, *names: str) -> dict[str, Any]:
    """Return the inputs of these names as lexicons; None for one that the rule leaves out."""
    paths = {name: getattr(job.input, name) for name in names}
    return {name: load_lexicon(path) if path else None for name, path in paths.items()}
