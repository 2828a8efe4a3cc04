"""Make the variants of each prompt: its copies with every other ranked adjective of the noun in its pair."""

from compclip.core.tables import CAPTIONS, PAIRS, PROMPTS, RANKING, SWAPPED, VARIANTS
from compclip.io import read_table, write_table
from compclip.split.make_variants import PROMPT, make_variants
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    variants = make_variants(
        read_table(job.input.prompts, PROMPTS, [*PROMPT, "pair"]), read_table(job.input.captions, CAPTIONS),
        read_table(job.input.pairs, PAIRS), read_table(job.input.ranking, RANKING),
        load_lexicon(job.input.adjectives), load_lexicon(job.input.nouns) if job.input.nouns else None,
        read_table(job.input.swapped, SWAPPED),
    )  # fmt: skip
    write_table(variants, job.output.variants, VARIANTS)


if __name__ == "__main__":
    run(main)
