"""Read a job's tables, whole or in blocks of images, and its lexicons."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import ImageRange, blocks_of, image_ids, read_table
from compclip.core.tables import (
    CAPTIONS,
    IMAGES,
    MANIFEST,
    PAIRS,
    PROMPTS,
    RANKING,
    SPLIT,
    SWAPPED,
    VARIANTS,
)
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job

# By the names of tables among the inputs of rules.
SCHEMAS = {
    "captions": CAPTIONS,
    "images": IMAGES,
    "manifest": MANIFEST,
    "pairs": PAIRS,
    "prompts": PROMPTS,
    "ranking": RANKING,
    "splits": SPLIT,
    "swapped": SWAPPED,
    "variants": VARIANTS,
}

BLOCK = 100_000  # rows of a table that a step holds at once


def image_blocks(job: Job, table: str = "captions") -> list[ImageRange | None]:
    """Return the blocks of the job's images, or of those of its shard, by the rows of a table."""
    # A job without shards is the first of one.
    shard = int(getattr(job.wildcards, "shard", 1))
    shards = int(getattr(job.wildcards, "shards", 1))
    return blocks_of(getattr(job.input, table), BLOCK, shard, shards)


def sample_images(
    captions: Path, max_captions: int, generator: np.random.Generator
) -> list[str] | None:
    """Return random images with about ``max_captions`` captions, sorted; None, for all, if there
    are not more.
    """
    ids, rows = image_ids(captions)
    total = len(ids)
    # Images are drawn, not captions, because a step needs all captions of an image.
    number = total * max_captions // max(rows, 1)
    if number >= total:
        return None
    chosen = generator.choice(total, number, replace=False)
    return ids.take(np.sort(chosen)).to_pylist()


def read_tables(job: Job, *names: str, images: ImageRange | None = None) -> dict[str, pd.DataFrame]:
    """Return the inputs of these names, or the rows of some images, checked against their
    schemas.
    """
    return {
        name: read_table(getattr(job.input, name), SCHEMAS[name], images=images) for name in names
    }


def read_blocks(job: Job, *names: str) -> dict[str, Any]:
    """Return the inputs of these names as iterators of the same blocks of images
    (``tables.in_blocks``).
    """
    blocks = image_blocks(job)

    # A function of its own: the iterators would otherwise share the last ``name`` of the loop.
    def read_blocks_of(name: str) -> Iterator[pd.DataFrame]:
        for images in blocks:
            yield read_tables(job, name, images=images)[name]

    return {name: read_blocks_of(name) for name in names}


def read_json_lists(files: Iterable[Path]) -> list[Any]:
    """Return the lists in JSON files, such as those of shards, as one."""
    joined: list[Any] = []
    for file in files:
        joined += read_json(file)
    return joined


def read_lexicons(job: Job, *names: str) -> dict[str, Any]:
    """Return the inputs of these names as lexicons; None for inputs that the rule omits."""
    paths = {name: getattr(job.input, name) for name in names}
    return {name: load_lexicon(path) if path else None for name, path in paths.items()}
