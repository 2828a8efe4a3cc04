"""Check a split and its swaps by word order alone, and compare word order with the extracted
pairs.
"""

from typing import Any

from compclip.core.heldout import read_heldout
from compclip.io import Images, read_frame, read_json, write_json
from compclip.split.audit import audit_block, join_audits, unused_images
from compclip.split.composition import Lexicons
from workflow_scripts.inputs import image_blocks, read_lexicons, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    heldout = read_heldout(job.input.heldout)
    lexicons = Lexicons(**read_lexicons(job, "adjectives", "nouns", "compounds"))

    def part(images: Images | None) -> dict[str, Any]:
        tables = read_tables(job, "captions", "pairs", "splits", "swapped", images=images)
        columns = ["image_id", "part", "value"]
        facts = read_frame(job.input.facts, columns, images) if job.input.facts else None
        return audit_block(**tables, heldout=heldout, lexicons=lexicons, facts=facts)

    shards = [read_json(path) for path in job.input.shards]
    parts = sum(shards, []) if shards else [part(images) for images in image_blocks(job)]
    if hasattr(job.wildcards, "shard"):
        return write_json(parts, job.output.audit)
    result = join_audits(
        parts,
        heldout=heldout,
        tolerance=job.params.violations,
        where=job.where,
        reported=[
            violation
            for path in job.input.reports
            for violation in read_json(path).get("violations", [])
        ],
        unused=unused_images(read_json(job.input.unused)),
    )
    write_json(result, job.output.audit)


if __name__ == "__main__":
    run_script(main)
