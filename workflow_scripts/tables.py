"""Read a job's inputs that are tables."""

import pandas as pd

from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED, VARIANTS
from compclip.io import read_table
from workflow_scripts.job import Job

SCHEMAS = {
    "captions": CAPTIONS, "images": IMAGES, "manifest": MANIFEST, "pairs": PAIRS, "prompts": PROMPTS,
    "ranking": RANKING, "splits": SPLIT, "swapped": SWAPPED, "variants": VARIANTS,
}  # fmt: skip


def read_tables(job: Job, *names: str) -> dict[str, pd.DataFrame]:
    """Return the inputs of these names, checked against the schema of each."""
    return {name: read_table(getattr(job.input, name), SCHEMAS[name]) for name in names}
