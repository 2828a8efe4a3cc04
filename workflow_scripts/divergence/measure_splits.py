"""Measure the atom and compound divergence of each test split from train."""

from compclip.core.tables import CAPTION_KEY, CAPTIONS, DIVERGENCE, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED
from compclip.divergence.config import DivergenceConfig
from compclip.divergence.measure_splits import measure_splits
from compclip.io import read_table, write_json, write_table
from compclip.pairs.engine import Extractor
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    params, settings = job.params, DivergenceConfig.model_validate(job.params.settings)
    nouns = load_lexicon(job.input.nouns) if job.input.nouns else None
    lexicons = [*map(load_lexicon, job.input.adjectives)], nouns, load_lexicon(job.input.compounds)
    divergences, summary = measure_splits(
        read_table(job.input.captions, CAPTIONS, [*CAPTION_KEY, "text"]),
        read_table(job.input.pairs, PAIRS, [*CAPTION_KEY, "adjective", "noun", "adjective_start"]),
        read_table(job.input.ranking, RANKING),
        read_table(job.input.splits, SPLIT),
        read_table(job.input.swapped, SWAPPED),
        read_table(job.input.prompts, PROMPTS, [*CAPTION_KEY, "split"]),
        settings,
        extractor=Extractor(params.model, *lexicons) if settings.subgraphs else None,
        processes=job.threads, cache=params.cache / "pairs" / "occurrences.sqlite",
        dataset=params.dataset, composition=job.wildcards.composition, seed=params.seed,
    )  # fmt: skip
    write_table(divergences, job.output.divergence, DIVERGENCE)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run(main)
