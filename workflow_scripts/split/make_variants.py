"""Make the variants of each prompt: its copies with other ranked adjectives of its noun, false of
the image.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from compclip.core.tables import RANKING, TESTS, VARIANTS
from compclip.io import read_json, read_table, write_json, write_table
from compclip.split.make_variants import summarize_variants, vary
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
    made, counts = (
        job.input.shards[::2],
        {split: (Counter[str](), Counter[str]()) for split in TESTS},
    )

    def add(more: Mapping[str, Sequence[Mapping[str, int]]]) -> None:
        for split, of_split in more.items():
            for mine, other in zip(counts[split], of_split, strict=True):
                mine.update(other)

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
            part, of_part = vary(
                asked, **tables, ranking=ranking, **lexicons, known_nouns=known_nouns
            )
            add(of_part)
            yield part

    write_table(parts(), job.output.variants, VARIANTS)
    for path in job.input.shards[1::2]:
        add(read_json(path))
    found = {split: of_split for split, of_split in counts.items() if of_split[0]}
    is_shard = hasattr(job.wildcards, "shard")
    write_json(found if is_shard else {"splits": summarize_variants(found)}, job.output.summary)


if __name__ == "__main__":
    run_script(main)
