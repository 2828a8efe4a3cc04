"""Read the images of all generators as entries, among whose texts judges choose."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from compclip.clip.embed import BoxedFile, item_finder
from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import MANIFEST
from compclip.score.entries import judged_entries
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job


def read_entries(job: Job) -> tuple[pd.DataFrame, pd.DataFrame, Callable[[str], BoxedFile]]:
    """Return entries, variants, and the function from a path to a file and its box.

    A prompt whose image is missing or broken has no path.
    """
    tables = read_tables(job, "images", "prompts", "variants")
    parts = []
    manifests = zip(job.params.splits_by_generator.items(), job.input.manifests, strict=True)
    for (name, splits), file in manifests:
        manifest = read_table(file, MANIFEST)
        for split in splits:
            for entries in judged_entries(tables["prompts"], manifest, split):
                # An empty table would change the types of columns.
                if len(entries):
                    parts.append(entries.assign(generator=name, split=split))
    find_item = item_finder(tables["images"], Path(job.params.results))
    return pd.concat(parts, ignore_index=True), tables["variants"], find_item
