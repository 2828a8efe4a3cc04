"""Measure the atom and compound divergence of each test split from train.

One process measures all compositions, because finding the subgraphs of the captions takes most of
the time, and compositions with the same lexicons share them.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from compclip.core.seeds import rng
from compclip.core.tables import (
    CAPTION_KEY,
    CAPTIONS,
    DIVERGENCE,
    PAIRS,
    PROMPTS,
    RANKING,
    SPLIT,
    SWAPPED,
)
from compclip.divergence.config import DivergenceConfig
from compclip.divergence.measure_splits import (
    SearchedTexts,
    SplitTables,
    measure_splits,
    search_texts,
)
from compclip.io import read_table, write_json, write_table
from compclip.pairs.engine import Extractor
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import sample_images
from workflow_scripts.job import Job, run_script

# Of longer captions together, those of random images are measured: the subgraphs of a character
# take 200 bytes.
MOST_CHARACTERS, FEW_CAPTIONS = 9_100_000, 10_000


def main(job: Job) -> None:
    params, settings = job.params, DivergenceConfig.model_validate(job.params.settings)
    generator = rng(params.seed, "measure_splits", params.dataset)
    few = sample_images(job.input.captions, FEW_CAPTIONS, generator)
    length = read_table(job.input.captions, CAPTIONS, ["text"], few)["text"].str.len().mean()
    images = sample_images(job.input.captions, int(MOST_CHARACTERS / length), generator)
    captions = read_table(job.input.captions, CAPTIONS, [*CAPTION_KEY, "text"], images)
    all_swapped = [read_table(file, SWAPPED, images=images) for file in job.input.swapped]

    @cache
    def search(lexicons: tuple[str, ...], nodes: int) -> SearchedTexts:
        """Return the subgraphs of the captions, and of the swapped captions of compositions with
        these lexicons.
        """
        nouns = load_lexicon(job.input.nouns) if job.input.nouns else None
        adjectives = [load_lexicon(Path(file)) for file in lexicons]
        extractor = Extractor(params.model, adjectives, nouns, load_lexicon(job.input.compounds))
        swapped = [
            table["swapped_text"]
            for of, table in zip(read_by, all_swapped, strict=True)
            if of == lexicons
        ]
        file = params.cache / "pairs" / "occurrences.sqlite"
        return search_texts(
            pd.concat([captions["text"], *swapped]), extractor, nodes, job.threads, file
        )

    read_by = [tuple(lexicons) for lexicons in params.lexicons]
    for number, composition in enumerate(params.compositions):
        divergences, summary = measure_splits(
            SplitTables(
                captions,
                read_table(
                    job.input.pairs[number],
                    PAIRS,
                    [*CAPTION_KEY, "adjective", "noun", "adjective_start"],
                    images,
                ),
                read_table(job.input.ranking[number], RANKING),
                read_table(job.input.splits[number], SPLIT, images=images),
                all_swapped[number],
                read_table(job.input.prompts[number], PROMPTS, [*CAPTION_KEY, "split"], images),
            ),
            settings,
            searched=search(read_by[number], settings.subgraphs.nodes)
            if settings.subgraphs
            else None,
            dataset=params.dataset,
            composition=composition,
            seed=params.seed,
        )
        write_table(divergences, job.output.divergence[number], DIVERGENCE)
        if images:
            summary["warnings"].append(
                f"measured on {len(images):,} random images, with {len(captions):,} captions"
            )
        write_json(summary, job.output.summary[number])


if __name__ == "__main__":
    run_script(main)
