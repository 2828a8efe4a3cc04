"""Check a split and its swaps by word order alone, and compare word order with the extracted
pairs.
"""

from collections.abc import Collection
from typing import Any

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_frame
from compclip.split.audit import audit_block, excluded_images, join_audits
from compclip.split.composition import Lexicons
from workflow_scripts.inputs import image_blocks, read_json_lists, read_lexicons, read_tables
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
    heldout = read_heldout(job.input.heldout)
    audits = read_json_lists(job.input.shards) if job.input.shards else audit_images(job, heldout)
    if job.is_shard:
        write_json(audits, job.output.audit)
        return
    # What the steps that read a published split have found wrong with it.
    reported: list[dict[str, Any]] = []
    for path in job.input.reports:
        reported += read_json(path).get("violations", [])
    audit = join_audits(
        audits,
        heldout=heldout,
        on_violation=job.params.on_violation,
        where=job.where,
        reported=reported,
        excluded=excluded_images(read_json(job.input.excluded)),
    )
    write_json(audit, job.output.audit)


if __name__ == "__main__":
    run_script(main)
