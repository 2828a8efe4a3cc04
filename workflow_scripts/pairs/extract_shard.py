"""Find the pairs of one shard of the captions; shards have consecutive captions, and do not change the pairs."""

from compclip.core.tables import PAIRS
from compclip.io import write_table
from workflow_scripts.job import Job, run
from workflow_scripts.pairs.extract_pairs import parse, read_captions


def main(job: Job) -> None:
    captions = read_captions(job)
    shard, shards = int(job.wildcards.shard), int(job.wildcards.shards)
    begin, end = (len(captions) * number // shards for number in (shard - 1, shard))
    write_table(parse(job, captions.iloc[begin:end]), job.output.found, PAIRS)


if __name__ == "__main__":
    run(main)
