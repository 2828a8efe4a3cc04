"""Divide the images into train, test_seen and test_unseen, or take a published or divergent division."""

from compclip.core.heldout import read_heldout
from compclip.core.tables import CAPTIONS, DIVISION, PAIRS, RANKING, SPLIT
from compclip.io import atomic, read_table, write_json, write_table
from compclip.split.make_splits import make_splits
from compclip.text.lexicon import load_lexicon
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    splits, summary = make_splits(
        read_table(job.input.captions, CAPTIONS),
        read_table(job.input.pairs, PAIRS, ["image_id", "adjective", "noun", "relation"]),
        read_table(job.input.ranking, RANKING), read_heldout(job.input.heldout),
        load_lexicon(job.input.adjectives), load_lexicon(job.input.nouns) if job.input.nouns else None,
        load_lexicon(job.input.compounds), test_seen=job.params.test_seen, published=job.params.published,
        division=read_table(job.input.division, DIVISION) if job.input.division else None, seed=job.params.seed,
        dataset=job.params.dataset, composition=job.wildcards.composition,
    )  # fmt: skip
    write_table(splits, job.output.splits, SPLIT)
    with atomic(job.output.csv) as temporary:
        splits.to_csv(temporary, index=False, lineterminator="\n")
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run(main)
