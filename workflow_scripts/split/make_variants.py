"""Make the variants of each prompt: with other ranked adjectives of its noun, false of
the image.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import RANKING, TESTS, VARIANTS
from compclip.split.make_variants import VariantCounts, VariantWords, summarize_variants, vary
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def make_blocks(job: Job, counts: dict[str, VariantCounts]) -> Iterator[pd.DataFrame]:
    """Yield the variants by split and block of images; the iteration adds to ``counts``."""
    ranking = read_table(job.input.ranking, RANKING)
    known_nouns = read_json(job.input.forms)["nouns"]
    lexicons = read_lexicons(job, "adjectives", "nouns")
    if job.params.one_value:
        # Without groups, any two adjectives exclude each other.
        lexicons["adjectives"] = replace(lexicons["adjectives"], groups=())
    words = VariantWords.read(ranking, lexicons["adjectives"], lexicons["nouns"], known_nouns)
    blocks = image_blocks(job)
    # The table is sorted by split, so several blocks are each read once a split.
    split_groups = [TESTS] if len(blocks) == 1 else [(split,) for split in TESTS]
    for splits, images in product(split_groups, blocks):
        tables = read_tables(job, "prompts", "captions", "pairs", "swapped", images=images)
        prompts = tables.pop("prompts")
        prompts = prompts[prompts["split"].isin(splits)]
        variants, block_counts = vary(prompts, **tables, words=words)
        for split, split_counts in block_counts.items():
            counts[split].add(split_counts)
        yield variants


def join_shards(job: Job) -> Iterator[pd.DataFrame]:
    """Yield the variants that shards have made, again by split and block of images."""
    for split, images in product(TESTS, image_blocks(job)):
        shards = [read_table(path, VARIANTS, images=images) for path in job.input.shard_tables]
        # A block's images may be in several shards, whose rows are in the order of images.
        variants = pd.concat(shards)
        yield variants[variants["split"] == split]


def main(job: Job) -> None:
    counts = {split: VariantCounts() for split in TESTS}
    if job.input.shard_tables:
        variants = join_shards(job)
        for path in job.input.shard_counts:
            for split, content in read_json(path).items():
                counts[split].add(VariantCounts.from_json(content))
    else:
        variants = make_blocks(job, counts)
    write_table(variants, job.output.variants, VARIANTS)
    # Complete only now: ``make_blocks`` counts while the table is written.
    prompted = {
        split: split_counts for split, split_counts in counts.items() if split_counts.prompts
    }
    if job.is_shard:
        contents = {split: split_counts.to_json() for split, split_counts in prompted.items()}
        write_json(contents, job.output.summary)
    else:
        write_json({"splits": summarize_variants(prompted)}, job.output.summary)


if __name__ == "__main__":
    run_script(main)
