"""Divide the images into train, test_seen and test_unseen, or take a published or divergent
division.
"""

from compclip.core.artifacts.files import atomic, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import DIVISION, RANKING, SPLIT
from compclip.pairs.counts import nouns_of
from compclip.split.make_splits import make_splits
from workflow_scripts.inputs import read_blocks, read_json_lists, read_lexicons
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    division = read_table(job.input.division, DIVISION) if job.input.division else None
    ranking = read_table(job.input.ranking, RANKING)
    heldout = read_heldout(job.input.heldout)
    lexicons = read_lexicons(job, "adjectives", "nouns", "compounds")
    # Without shards, the library finds the contested captions itself, unless a split is published.
    contested = read_json_lists(job.input.contested) if job.input.contested else None
    splits, summary = make_splits(
        **read_blocks(job, "captions", "pairs"),
        **lexicons,
        ranking=ranking,
        heldout=heldout,
        test_seen=params.test_seen,
        published=params.published,
        division=division,
        contested=contested,
        seed=params.seed,
        dataset=params.dataset,
        composition=job.wildcards.composition,
    )
    # Each shard of offer_swaps needs the nouns of all captions of test_seen.
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    # Blocks are read again, because their iterators have ended.
    nouns = nouns_of(**read_blocks(job, "captions", "pairs"), images=seen)
    summary["nouns"] = sorted(nouns)
    write_table(splits, job.output.splits, SPLIT)
    with atomic(job.output.csv) as temporary:
        splits.to_csv(temporary, index=False, lineterminator="\n")
    write_json(summary, job.output.summary)


if __name__ == "__main__":
    run_script(main)
