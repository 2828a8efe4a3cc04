"""Make the variants of each prompt: its copies with other ranked adjectives of its noun, false of the image."""

from dataclasses import replace

from compclip.core.tables import CAPTIONS, PAIRS, PROMPTS, RANKING, SWAPPED, VARIANTS
from compclip.io import read_table, write_json, write_table
from compclip.split.make_variants import PROMPT_KEY, make_variants
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    adjectives = load_lexicon(job.input.adjectives)
    if job.params.one_value:
        adjectives = replace(adjectives, groups=())
    variants, counts = make_variants(
        read_table(job.input.prompts, PROMPTS, [*PROMPT_KEY, "pair"]), read_table(job.input.captions, CAPTIONS),
        read_table(job.input.pairs, PAIRS), read_table(job.input.ranking, RANKING),
        adjectives, load_lexicon(job.input.nouns) if job.input.nouns else None,
        read_table(job.input.swapped, SWAPPED),
    )  # fmt: skip
    write_table(variants, job.output.variants, VARIANTS)
    write_json({"splits": counts}, job.output.summary)


if __name__ == "__main__":
    run(main)
