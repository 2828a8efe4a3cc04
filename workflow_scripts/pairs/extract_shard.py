"""Find the pairs of one shard of the captions."""

from workflow_scripts.core import cli
from workflow_scripts.core.io import write_table
from workflow_scripts.core.tables import PAIRS
from workflow_scripts.pairs.extract_pairs import extract, read_captions
from workflow_scripts.pairs.steps import ExtractShard


def main(step: ExtractShard) -> None:
    captions = read_captions(step)
    begin, end = (len(captions) * shard // step.shards for shard in (step.shard - 1, step.shard))
    write_table(extract(step, captions.iloc[begin:end]), step.found, PAIRS)


if __name__ == "__main__":
    cli.run(main)
