"""Find the pairs of one shard of the captions."""

from compclip.core import cli
from compclip.core.tables import PAIRS
from compclip.io import write_table
from compclip.pairs.extract_pairs import extract, read_captions
from compclip.pairs.steps import ExtractShard


def main(step: ExtractShard) -> None:
    captions = read_captions(step)
    begin, end = (len(captions) * shard // step.shards for shard in (step.shard - 1, step.shard))
    write_table(extract(step, captions.iloc[begin:end]), step.found, PAIRS)


if __name__ == "__main__":
    cli.run(main)
