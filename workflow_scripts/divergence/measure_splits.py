"""Measure the atom and compound divergence of each test split from train."""

from compclip.core.tables import CAPTIONS, DIVERGENCE, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED
from compclip.divergence.config import DivergenceConfig
from compclip.divergence.measure_splits import CAPTION, measure_splits
from compclip.io import read_table, write_json, write_table
from compclip.pairs.engine import Extractor
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def extractor_of(job: Job) -> Extractor:
    nouns = load_lexicon(job.input.nouns) if job.input.nouns else None
    adjectives, compounds = map(load_lexicon, job.input.adjectives), load_lexicon(job.input.compounds)
    return Extractor(job.params.model, [*adjectives], nouns, compounds)


def main(job: Job) -> None:
    params, settings = job.params, DivergenceConfig.model_validate(job.params.settings)
    divergences, summary = measure_splits(
        read_table(job.input.captions, CAPTIONS, [*CAPTION, "text"]),
        read_table(job.input.pairs, PAIRS, [*CAPTION, "adjective", "noun", "adjective_start"]),
        read_table(job.input.ranking, RANKING),
        read_table(job.input.splits, SPLIT),
        read_table(job.input.swapped, SWAPPED),
        read_table(job.input.prompts, PROMPTS, [*CAPTION, "split"]),
        settings,
        extractor=extractor_of(job) if settings.subgraphs else None,
        processes=job.threads, cache=params.cache / "pairs" / "occurrences.sqlite",
        dataset=params.dataset, composition=job.wildcards.composition, seed=params.seed,
    )  # fmt: skip
    write_table(divergences, job.output.divergence, DIVERGENCE)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run(main)
