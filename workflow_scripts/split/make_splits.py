"""Divide the images into train, test_seen and test_unseen, or take a published or divergent division."""

from compclip.core.heldout import read_heldout
from compclip.core.tables import DIVISION, SPLIT
from compclip.io import atomic, read_table, write_json, write_table
from compclip.split.make_splits import make_splits
from workflow_scripts.inputs import read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    read = read_tables(job, "captions", "pairs", "ranking") | read_lexicons(job, "adjectives", "nouns", "compounds")
    splits, summary = make_splits(
        **read, heldout=read_heldout(job.input.heldout), test_seen=job.params.test_seen, published=job.params.published,
        division=read_table(job.input.division, DIVISION) if job.input.division else None, seed=job.params.seed,
        dataset=job.params.dataset, composition=job.wildcards.composition,
    )  # fmt: skip
    write_table(splits, job.output.splits, SPLIT)
    with atomic(job.output.csv) as temporary:
        splits.to_csv(temporary, index=False, lineterminator="\n")
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
