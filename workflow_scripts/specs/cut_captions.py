"""Read a source of long captions: which examples are usable, and where the chunks of each caption end."""

from collections import Counter

from workflow_scripts.core import cli, tables
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import require
from workflow_scripts.core.io import write_json, write_table
from workflow_scripts.dataset.source import NAMES_LISTED
from workflow_scripts.specs.chunks import chunk_all
from workflow_scripts.specs.data import check_images, read_source
from workflow_scripts.specs.steps import CutCaptions


def main(step: CutCaptions) -> None:
    table = check_images(read_source(step.examples), step.images or step.examples.parent)
    usable = table["fault"] == ""
    skipped = [f"{row.image or f'record {row.Index + 1}'}: {row.fault}" for row in table[~usable].itertuples()]
    for line in skipped[:3]:
        log.warning("skipped: %s", line)
    fault = f"none of {len(table)} examples is usable"
    require(usable.any(), step.examples, fault, "check that --images is the folder of the images")
    log.info("cutting %d captions into chunks, %d examples are skipped", usable.sum(), len(skipped))
    with Cache(step.cache / "specs" / "chunks.sqlite") as cache:
        table["ends"] = chunk_all(table["text"].where(usable, "").tolist(), step.parsing.model, cache, step.processes)
    write_table(table, step.captions, tables.CHUNKS)
    reasons = dict(sorted(Counter(fault.split(" (")[0] for fault in table["fault"][~usable]).items()))
    write_json(
        {
            "examples": int(usable.sum()),
            "left_out": {"count": len(skipped), "reasons": reasons, "names": skipped[:NAMES_LISTED]},
        },
        step.summary,
    )


if __name__ == "__main__":
    cli.run(main)
