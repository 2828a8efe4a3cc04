"""Measure the atom and compound divergence of each test split from train.

One process measures all compositions, because finding the subgraphs of the captions takes most of
the time, and compositions with the same lexicons share them.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import read_table, write_table
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
from compclip.pairs.engine import Extractor
from compclip.text.language import skip_torch
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import sample_images
from workflow_scripts.job import Job, run_script

# Of longer captions together, those of random images are measured: the subgraphs of a character
# take 200 bytes.
MOST_CHARACTERS, FEW_CAPTIONS = 9_100_000, 10_000


def choose_images(job: Job) -> list[str] | None:
    """Return random images whose captions fit into memory; None, for all, if all do."""
    captions = job.input.captions
    generator = rng(job.params.seed, "measure_splits", job.params.dataset)
    # The mean length is estimated, to read few of many captions.
    few = sample_images(captions, FEW_CAPTIONS, generator)
    texts = read_table(captions, CAPTIONS, ["text"], few)["text"]
    mean_length = texts.str.len().mean()
    max_captions = int(MOST_CHARACTERS / mean_length)
    return sample_images(captions, max_captions, generator)


def extractor_of(job: Job, lexicons: Sequence[str]) -> Extractor:
    """Return the extractor with which the pairs of a composition were found."""
    adjectives = [load_lexicon(Path(file)) for file in lexicons]
    nouns = load_lexicon(job.input.nouns) if job.input.nouns else None
    return Extractor(job.params.model, adjectives, nouns, load_lexicon(job.input.compounds))


def main(job: Job) -> None:
    read = job.input
    params = job.params
    settings = DivergenceConfig.model_validate(params.settings)
    skip_torch(params.model)
    images = choose_images(job)
    captions = read_table(read.captions, CAPTIONS, [*CAPTION_KEY, "text"], images)
    all_swapped = [read_table(file, SWAPPED, images=images) for file in read.swapped]
    all_lexicons = [tuple(lexicons) for lexicons in params.lexicons]

    @cache
    def search(lexicons: tuple[str, ...], nodes: int) -> SearchedTexts:
        """Return the subgraphs of the captions, and of the swapped captions of compositions with
        these lexicons.
        """
        extractor = extractor_of(job, lexicons)
        texts = [captions["text"]]
        for swapped, swapped_lexicons in zip(all_swapped, all_lexicons, strict=True):
            if swapped_lexicons == lexicons:
                texts.append(swapped["swapped_text"])
        # The parses that extract_pairs has made are found in its cache.
        file = params.cache / "pairs" / "occurrences.sqlite"
        return search_texts(pd.concat(texts), extractor, nodes, job.threads, file)

    pair_columns = [*CAPTION_KEY, "adjective", "noun", "adjective_start"]
    for number, composition in enumerate(params.compositions):
        searched = None
        if settings.subgraphs:
            searched = search(all_lexicons[number], settings.subgraphs.nodes)
        divergences, summary = measure_splits(
            SplitTables(
                captions,
                read_table(read.pairs[number], PAIRS, pair_columns, images),
                read_table(read.ranking[number], RANKING),
                read_table(read.splits[number], SPLIT, images=images),
                all_swapped[number],
                read_table(read.prompts[number], PROMPTS, [*CAPTION_KEY, "split"], images),
            ),
            settings,
            searched=searched,
            dataset=params.dataset,
            composition=composition,
            seed=params.seed,
        )
        write_table(divergences, job.output.divergence[number], DIVERGENCE)
        if images:
            # Small samples diverge more, so that readers must know of the sample.
            summary["warnings"].append(
                f"measured on {len(images):,} random images, with {len(captions):,} captions"
            )
        write_json(summary, job.output.summary[number])


if __name__ == "__main__":
    run_script(main)
