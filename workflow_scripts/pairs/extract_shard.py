"""Find the pairs of one shard of consecutive captions; the number of shards does not affect the pairs."""

from compclip.core.tables import PAIRS
from compclip.io import write_table
from workflow_scripts.job import Job, run_script
from workflow_scripts.pairs.extract_pairs import checked_captions, parse_captions


def main(job: Job) -> None:
    captions = checked_captions(job)
    shard, shards = int(job.wildcards.shard), int(job.wildcards.shards)
    begin, end = (len(captions) * number // shards for number in (shard - 1, shard))
    write_table(parse_captions(job, captions.iloc[begin:end]), job.output.found, PAIRS)


if __name__ == "__main__":
    run_script(main)
