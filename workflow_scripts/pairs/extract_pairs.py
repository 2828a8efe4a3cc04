"""Find the adjective-noun pairs of all captions, or join those that shards have found; all forms of
a noun get one name.
"""

from collections.abc import Iterator

import pandas as pd

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import ImageRange, read_table, write_table
from compclip.core.tables import PAIRS
from compclip.pairs.counts import PairCounts
from compclip.pairs.engine import Extractor
from compclip.pairs.noun_forms import NounForms, caption_words
from compclip.text.language import identity
from workflow_scripts.inputs import image_blocks
from workflow_scripts.job import Job, run_script
from workflow_scripts.pairs.parse_captions import checked_captions, extractor_of, parse_cached


def pairs_as_stated(
    job: Job, extractor: Extractor, images: ImageRange | None, captions: pd.DataFrame
) -> pd.DataFrame:
    """Return the pairs of some images, found in their captions or joined from shards."""
    if not job.input.shards:
        return parse_cached(job, extractor, captions)
    tables = [read_table(path, PAIRS, images=images) for path in job.input.shards]
    return pd.concat(tables, ignore_index=True)


def united_blocks(job: Job, extractor: Extractor, counts: PairCounts) -> Iterator[pd.DataFrame]:
    """Yield the pairs of all images, with one name for the forms of a noun; the iteration adds to
    ``counts``.
    """
    blocks = image_blocks(job)
    words = None
    # Without a noun lexicon, the words of all captions tell which forms are of one noun, so shards
    # leave that to this step.
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
    counts = PairCounts()
    write_table(united_blocks(job, extractor_of(job), counts), job.output.pairs, PAIRS)
    # The summary names the parser, which decides the pairs.
    write_json(counts.summary(identity(job.params.model)), job.output.summary)


if __name__ == "__main__":
    run_script(main)
