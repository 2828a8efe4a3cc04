"""Find the adjective-noun pairs in the captions of a shard; forms of a noun keep different
names.
"""

from collections.abc import Iterator

import pandas as pd

from compclip.core import limits
from compclip.core.artifacts.parquet import ImageRange, read_table, write_table
from compclip.core.errors import require
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.pairs.engine import Extractor
from compclip.pairs.extract_pairs import parse_captions
from compclip.text.language import skip_torch
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import image_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


def extractor_of(job: Job) -> Extractor:
    """Return the extractor with the job's spaCy pipeline and lexicons."""
    model = job.params.model
    skip_torch(model)
    adjectives = [load_lexicon(path) for path in job.input.adjectives]
    return Extractor(model, adjectives, **read_lexicons(job, "nouns", "compounds"))


def checked_captions(job: Job, images: ImageRange | None) -> pd.DataFrame:
    """Return image_id, caption_id and text of captions; raises UserError if one is too long."""
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "caption_id", "text"], images)
    too_long = captions[captions["text"].str.len() > limits.CAPTION]
    # A loop over at most one row, whose columns are then attributes.
    for row in too_long.head(1).itertuples():
        fault = limits.over("CAPTION", f"{len(row.text):,} characters")
        caption = f"{job.input.captions}: {row.image_id}, caption {row.caption_id}"
        require(False, caption, fault, "shorten or remove it")
    return captions


def parse_cached(job: Job, extractor: Extractor, captions: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of captions, with the job's processes and cache."""
    # A killed job finds what it has parsed, and measure_splits the parses, in this cache.
    cache = job.params.cache / "pairs" / "occurrences.sqlite"
    return parse_captions(captions, extractor, job.threads, cache)


def main(job: Job) -> None:
    extractor = extractor_of(job)

    def blocks() -> Iterator[pd.DataFrame]:
        for images in image_blocks(job):
            yield parse_cached(job, extractor, checked_captions(job, images))

    write_table(blocks(), job.output.pairs, PAIRS)


if __name__ == "__main__":
    run_script(main)
