"""Make the variants of each prompt: its copies with other ranked adjectives of its noun, false of
the image.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pandas as pd

from compclip.core.tables import RANKING, TESTS, VARIANTS
from compclip.io import read_json, read_table, write_json, write_table
from compclip.split.make_variants import VariantCounts, VariantWords, summarize_variants, vary
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    ranking, known_nouns = (
        read_table(job.input.ranking, RANKING),
        read_json(job.input.forms)["nouns"],
    )
    lexicons = read_lexicons(job, "adjectives", "nouns")
    if job.params.one_value:
        lexicons["adjectives"] = replace(lexicons["adjectives"], groups=())
    words = VariantWords.read(ranking, lexicons["adjectives"], lexicons["nouns"], known_nouns)
    made = job.input.shards[::2]
    counts = {split: VariantCounts() for split in TESTS}

    def parts() -> Iterator[pd.DataFrame]:
        blocks = image_blocks(job)
        # The table is sorted by split, so each split needs all blocks and shards.
        alone = len(blocks) == 1 and not made
        for splits, images in product([TESTS] if alone else [(split,) for split in TESTS], blocks):
            if made:
                part = pd.concat(read_table(path, VARIANTS, images=images) for path in made)
                yield part[part["split"].isin(splits)]
                continue
            tables = read_tables(job, "prompts", "captions", "pairs", "swapped", images=images)
            prompts = tables.pop("prompts")
            asked = prompts[prompts["split"].isin(splits)]
            part, more = vary(asked, **tables, words=words)
            for split, split_counts in more.items():
                counts[split].add(split_counts)
            yield part

    write_table(parts(), job.output.variants, VARIANTS)
    for path in job.input.shards[1::2]:
        for split, content in read_json(path).items():
            counts[split].add(VariantCounts.from_json(content))
    prompted = {
        split: split_counts for split, split_counts in counts.items() if split_counts.prompts
    }
    if hasattr(job.wildcards, "shard"):
        contents = {split: split_counts.to_json() for split, split_counts in prompted.items()}
        return write_json(contents, job.output.summary)
    write_json({"splits": summarize_variants(prompted)}, job.output.summary)


if __name__ == "__main__":
    run_script(main)
