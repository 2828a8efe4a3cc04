"""Find the adjective-noun pairs of all captions, or of those of a shard; join the pairs of all
shards.
"""

from collections.abc import Iterator

import pandas as pd

from compclip.core import limits
from compclip.core.errors import require
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.io import Images, read_table, write_json, write_table
from compclip.pairs.counts import PairCounts
from compclip.pairs.engine import Extractor
from compclip.pairs.extract_pairs import find_pairs
from compclip.pairs.noun_forms import NounForms, caption_words
from compclip.text.language import identity, skip_torch
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import image_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


def checked_captions(job: Job, images: Images | None) -> pd.DataFrame:
    """Return image_id, caption_id and text of captions; raises UserError if one is too long."""
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "caption_id", "text"], images)
    for row in captions[captions["text"].str.len() > limits.CAPTION].head(1).itertuples():
        fault = limits.over("CAPTION", f"{len(row.text):,} characters")
        require(
            False,
            f"{job.input.captions}: {row.image_id}, caption {row.caption_id}",
            fault,
            "shorten or remove it",
        )
    return captions


def main(job: Job) -> None:
    skip_torch(job.params.model)
    counts, shards = PairCounts(), job.input.shards
    is_shard = hasattr(job.wildcards, "shard")
    lexicons = read_lexicons(job, "nouns", "compounds")
    extractor = Extractor(
        job.params.model, [load_lexicon(path) for path in job.input.adjectives], **lexicons
    )
    # All captions tell which forms are of one noun, so shards leave that to the step that joins
    # them.
    words = None
    if not is_shard and not lexicons["nouns"]:
        words = caption_words(
            text for images in image_blocks(job) for text in checked_captions(job, images)["text"]
        )
    noun_forms = NounForms(extractor.vocabulary, words)

    def blocks() -> Iterator[pd.DataFrame]:
        for images in image_blocks(job):
            captions = checked_captions(job, images)
            if shards:
                pairs = pd.concat(
                    [read_table(path, PAIRS, images=images) for path in shards], ignore_index=True
                )
            else:
                cache = job.params.cache / "pairs" / "occurrences.sqlite"
                pairs = find_pairs(captions, extractor, job.threads, cache)
            if not is_shard:
                pairs = noun_forms.unite(captions, pairs)
            counts.add(captions, pairs)
            yield pairs

    write_table(blocks(), job.output.pairs, PAIRS)
    if not is_shard:
        write_json(counts.summary(identity(job.params.model)), job.output.summary)


if __name__ == "__main__":
    run_script(main)
