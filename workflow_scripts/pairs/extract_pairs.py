"""Find the adjective-noun pairs of all captions, or of those of a shard; join the pairs of all
shards.
"""

from collections.abc import Iterator

import pandas as pd

from compclip.core import limits
from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import ImageRange, read_table, write_table
from compclip.core.errors import require
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.pairs.counts import PairCounts
from compclip.pairs.engine import Extractor
from compclip.pairs.extract_pairs import find_pairs
from compclip.pairs.noun_forms import NounForms, caption_words
from compclip.text.language import identity, skip_torch
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import image_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


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


def pairs_as_stated(
    job: Job, extractor: Extractor, images: ImageRange | None, captions: pd.DataFrame
) -> pd.DataFrame:
    """Return the pairs of some images, found in their captions or joined from shards."""
    if job.input.shards:
        tables = [read_table(path, PAIRS, images=images) for path in job.input.shards]
        return pd.concat(tables, ignore_index=True)
    # A killed job finds what it has parsed, and measure_splits the parses, in this cache.
    cache = job.params.cache / "pairs" / "occurrences.sqlite"
    return find_pairs(captions, extractor, job.threads, cache)


def shard_blocks(job: Job, extractor: Extractor) -> Iterator[pd.DataFrame]:
    """Yield the pairs of a shard's images; forms of a noun keep different names."""
    for images in image_blocks(job):
        captions = checked_captions(job, images)
        yield pairs_as_stated(job, extractor, images, captions)


def united_blocks(job: Job, extractor: Extractor, counts: PairCounts) -> Iterator[pd.DataFrame]:
    """Yield the pairs of all images, with one name for the forms of a noun; the iteration adds to
    ``counts``.
    """
    blocks = image_blocks(job)
    words = None
    # Without a noun lexicon, the words of all captions tell which forms are of one noun, so shards
    # leave that to the step that joins them.
    if not job.input.nouns:
        words = caption_words(
            text for images in blocks for text in checked_captions(job, images)["text"]
        )
    noun_forms = NounForms(extractor.vocabulary, words)
    for images in blocks:
        captions = checked_captions(job, images)
        pairs = pairs_as_stated(job, extractor, images, captions)
        pairs = noun_forms.unite(captions, pairs)
        counts.add(captions, pairs)
        yield pairs


def main(job: Job) -> None:
    model = job.params.model
    skip_torch(model)
    adjectives = [load_lexicon(path) for path in job.input.adjectives]
    extractor = Extractor(model, adjectives, **read_lexicons(job, "nouns", "compounds"))
    if job.is_shard:
        write_table(shard_blocks(job, extractor), job.output.pairs, PAIRS)
        return
    counts = PairCounts()
    write_table(united_blocks(job, extractor, counts), job.output.pairs, PAIRS)
    # The summary names the parser, which decides the pairs.
    write_json(counts.summary(identity(model)), job.output.summary)


if __name__ == "__main__":
    run_script(main)
