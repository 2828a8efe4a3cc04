"""Check a split and its swaps by word order alone, and compare word order with the extracted
pairs.
"""

from typing import Any

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.split.audit import excluded_images, join_audits
from workflow_scripts.inputs import read_json_lists
from workflow_scripts.job import Job, run_script
from workflow_scripts.split.audit_block import audit_images


def main(job: Job) -> None:
    heldout = read_heldout(job.input.heldout)
    audits = read_json_lists(job.input.shards) if job.input.shards else audit_images(job, heldout)
    # What the steps that read a published split have found wrong with it.
    reported: list[dict[str, Any]] = []
    for path in job.input.reports:
        reported += read_json(path).get("violations", [])
    audit = join_audits(
        audits,
        heldout=heldout,
        on_violation=job.params.on_violation,
        where=job.location,
        reported=reported,
        excluded=excluded_images(read_json(job.input.excluded)),
    )
    write_json(audit, job.output.audit)


if __name__ == "__main__":
    run_script(main)
