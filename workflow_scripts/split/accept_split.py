"""Refuse a split in which the audit found violations, before later steps use it.

This is a separate step, because Snakemake deletes the outputs of failed steps, and audit.json must
remain.
"""

from typing import Any

from compclip.core.artifacts.files import read_json, write_json
from compclip.split.audit import accept_split
from workflow_scripts.job import Job, run_script


def remedy_for(audit: dict[str, Any], is_published: bool) -> str:
    """Return what to do about violations."""
    remedy = "set split.on_violation to warn to use this split nevertheless"
    violations = audit["violations"]
    # The faults of a published split cannot be fixed here.
    if is_published or not violations:
        return remedy
    rule = "swap_adjectives" if violations[0]["guarantee"] == "swapped" else "make_splits"
    return f"rerun with --forcerun {rule}, or {remedy}"


def main(job: Job) -> None:
    audit = read_json(job.input.audit)
    remedy = remedy_for(audit, job.params.is_published)
    write_json(accept_split(audit, job.input.audit, job.location, remedy), job.output.accepted)


if __name__ == "__main__":
    run_script(main)
