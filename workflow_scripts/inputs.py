"""Read a job's tables and lexicons."""

from typing import Any

import pandas as pd

from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED, VARIANTS
from compclip.io import read_table
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job

SCHEMAS = {
    "captions": CAPTIONS, "images": IMAGES, "manifest": MANIFEST, "pairs": PAIRS, "prompts": PROMPTS,
    "ranking": RANKING, "splits": SPLIT, "swapped": SWAPPED, "variants": VARIANTS,
}  # fmt: skip


def read_tables(job: Job, *names: str) -> dict[str, pd.DataFrame]:
    """Return the inputs of these names, checked against their schemas."""
    return {name: read_table(getattr(job.input, name), SCHEMAS[name]) for name in names}


def read_lexicons(job: Job, *names: str) -> dict[str, Any]:
    """Return the inputs of these names as lexicons; None for inputs that the rule omits."""
    paths = {name: getattr(job.input, name) for name in names}
    return {name: load_lexicon(path) if path else None for name, path in paths.items()}
