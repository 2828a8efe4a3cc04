"""Make the variants of the prompts of a shard, and count prompts and dropped adjectives."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import RANKING, TESTS, VARIANTS
from compclip.split.make_variants import VariantCounts, VariantWords, vary_prompts
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def vary_blocks(job: Job, counts: dict[str, VariantCounts]) -> Iterator[pd.DataFrame]:
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
        variants, block_counts = vary_prompts(prompts, **tables, words=words)
        for split, split_counts in block_counts.items():
            counts[split].add(split_counts)
        yield variants


def main(job: Job) -> None:
    counts = {split: VariantCounts() for split in TESTS}
    write_table(vary_blocks(job, counts), job.output.variants, VARIANTS)
    # Complete only now: ``vary_blocks`` counts while the table is written.
    contents = {
        split: split_counts.to_json()
        for split, split_counts in counts.items()
        if split_counts.prompts
    }
    write_json(contents, job.output.summary)


if __name__ == "__main__":
    run_script(main)
