"""Swap adjectives in the captions of test_seen so that each changed pair is held out, or take published swaps."""

from compclip.core.heldout import read_heldout
from compclip.core.tables import CAPTIONS, PAIRS, SPLIT, SWAPPED
from compclip.io import read_table, write_json, write_table
from compclip.split.swap_adjectives import swap_adjectives
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    swapped, summary = swap_adjectives(
        read_table(job.input.captions, CAPTIONS), read_table(job.input.pairs, PAIRS),
        read_table(job.input.splits, SPLIT), read_heldout(job.input.heldout),
        load_lexicon(job.input.adjectives), load_lexicon(job.input.nouns) if job.input.nouns else None,
        load_lexicon(job.input.compounds), published=job.params.published, seed=job.params.seed,
        dataset=job.params.dataset, composition=job.wildcards.composition,
    )  # fmt: skip
    write_table(swapped, job.output.swapped, SWAPPED)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run(main)
