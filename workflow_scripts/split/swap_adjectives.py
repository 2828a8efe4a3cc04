"""Swap adjectives in the captions of test_seen so that each changed pair is held out, or take published swaps."""

from compclip.core.heldout import read_heldout
from compclip.core.tables import SWAPPED
from compclip.io import write_json, write_table
from compclip.split.swap_adjectives import swap_adjectives
from workflow_scripts.inputs import read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    read = read_tables(job, "captions", "pairs", "splits") | read_lexicons(job, "adjectives", "nouns", "compounds")
    swapped, summary = swap_adjectives(
        **read, heldout=read_heldout(job.input.heldout), published=job.params.published, seed=job.params.seed,
        dataset=job.params.dataset, composition=job.wildcards.composition,
    )  # fmt: skip
    write_table(swapped, job.output.swapped, SWAPPED)
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
