"""Divide the images into train, test_seen and test_unseen, or take a published or divergent
division.

A shard finds the contested captions, which takes most of the time.
"""

from compclip.core.heldout import read_heldout
from compclip.core.tables import DIVISION, RANKING, SPLIT, in_blocks
from compclip.io import atomic, read_json, read_table, write_json, write_table
from compclip.pairs.counts import nouns_of
from compclip.split.make_splits import contested_captions, make_splits
from compclip.split.reading import reader_of
from compclip.text.lexicon import forms_of
from workflow_scripts.inputs import read_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    heldout, blocks = read_heldout(job.input.heldout), read_blocks(job, "captions", "pairs")
    lexicons = read_lexicons(job, "adjectives", "nouns", "compounds")
    if hasattr(job.wildcards, "shard"):
        reader = reader_of(
            heldout, *forms_of(lexicons["adjectives"], lexicons["nouns"]), lexicons["compounds"]
        )
        both = in_blocks(blocks["captions"], blocks["pairs"])
        found = [contested_captions(texts, pairs, heldout, reader) for texts, pairs in both]
        return write_json(sum(found, []), job.output.contested)
    shards = [read_json(path) for path in job.input.shards]
    splits, summary = make_splits(
        **blocks,
        **lexicons,
        ranking=read_table(job.input.ranking, RANKING),
        heldout=heldout,
        test_seen=job.params.test_seen,
        published=job.params.published,
        division=read_table(job.input.division, DIVISION) if job.input.division else None,
        contested=sum(shards, []) if shards else None,
        seed=job.params.seed,
        dataset=job.params.dataset,
        composition=job.wildcards.composition,
    )
    write_table(splits, job.output.splits, SPLIT)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    # The forms in test_seen, which swaps need of all shards.
    summary["nouns"] = sorted(nouns_of(**read_blocks(job, "captions", "pairs"), images=seen))
    with atomic(job.output.csv) as temporary:
        splits.to_csv(temporary, index=False, lineterminator="\n")
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
