"""Make the variants of each prompt: with other ranked adjectives of its noun, false of
the image.
"""

from collections.abc import Iterator
from itertools import product

import pandas as pd

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import TESTS, VARIANTS
from compclip.split.make_variants import VariantCounts, summarize_variants
from workflow_scripts.inputs import image_blocks
from workflow_scripts.job import Job, run_script
from workflow_scripts.split.vary_prompts import vary_blocks


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
        variants = vary_blocks(job, counts)
    write_table(variants, job.output.variants, VARIANTS)
    # Complete only now: ``vary_blocks`` counts while the table is written.
    prompted = {
        split: split_counts for split, split_counts in counts.items() if split_counts.prompts
    }
    write_json({"splits": summarize_variants(prompted)}, job.output.summary)


if __name__ == "__main__":
    run_script(main)
