"""Find the pairs of one shard of the captions."""

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic_folder, write_frame, write_json
from workflow_scripts.pairs.extract_pairs import extract
from workflow_scripts.pairs.steps import ExtractShard


def main(step: ExtractShard) -> None:
    log.info("shard %d of %d", step.shard, step.shards)
    with atomic_folder(step.found) as folder:
        count, hashes = extract(step, folder / "pairs.parquet", step.shard, step.shards)
        write_frame(pd.DataFrame({"hash": hashes}), folder / "texts.parquet")
        write_json({"of": [step.shard, step.shards], "counts": count}, folder / "counts.json")


if __name__ == "__main__":
    cli.run(main)
