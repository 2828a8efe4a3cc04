"""Read a source of long captions: which examples are usable, and where the chunks of each caption end."""

from compclip.core import cli, tables
from compclip.core.cache import Cache
from compclip.core.errors import require
from compclip.core.log import log
from compclip.io import write_table
from compclip.specs.chunks import chunk_all
from compclip.specs.data import check_images, read_source
from compclip.specs.steps import CutCaptions


def main(step: CutCaptions) -> None:
    table = check_images(read_source(step.examples), step.images or step.examples.parent)
    usable = table["fault"] == ""
    for row in table[~usable].head(3).itertuples():
        log.warning("skipped: record %d (%s): %s", row.Index + 1, row.image, row.fault)
    fault = f"none of {len(table)} examples is usable"
    require(usable.any(), step.examples, fault, "check that --images is the folder of the images")
    log.info("cutting %d captions into chunks, %d examples are skipped", usable.sum(), (~usable).sum())
    with Cache(step.cache / "specs" / "chunks.sqlite") as cache:
        table["ends"] = chunk_all(table["text"].where(usable, "").tolist(), step.parsing.model, cache, step.processes)
    write_table(table, step.captions, tables.CHUNKS)


if __name__ == "__main__":
    cli.run(main)
