"""Check the images of a shard by word order alone, as ``audit`` does with all."""

from collections.abc import Collection
from typing import Any

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_frame
from compclip.split.audit import audit_block
from compclip.split.composition import Lexicons
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script

# The value, such as a color, of each part of a drawn bird.
FACT_COLUMNS = ["image_id", "part", "value"]


def audit_images(job: Job, heldout: Collection[str]) -> list[dict[str, Any]]:
    """Return the audits of the job's images, in blocks, so that no table is read whole."""
    lexicons = Lexicons(**read_lexicons(job, "adjectives", "nouns", "compounds"))
    audits = []
    for images in image_blocks(job):
        tables = read_tables(job, "captions", "pairs", "splits", "swapped", images=images)
        # Only drawn images have facts.
        facts = read_frame(job.input.facts, FACT_COLUMNS, images) if job.input.facts else None
        audits.append(audit_block(**tables, heldout=heldout, lexicons=lexicons, facts=facts))
    return audits


def main(job: Job) -> None:
    write_json(audit_images(job, read_heldout(job.input.heldout)), job.output.audit)


if __name__ == "__main__":
    run_script(main)
