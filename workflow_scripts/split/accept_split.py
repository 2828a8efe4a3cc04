"""Refuse a split in which the audit found violations, before later steps use it.

This is a separate step, because Snakemake deletes the outputs of failed steps, and audit.json must
remain.
"""

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.errors import require
from compclip.core.log import log
from compclip.split.audit import describe_violation
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    audit = read_json(job.input.audit)
    # A record of a published split may stand for several violations, so records are not counted.
    violations = audit["violations"]
    count = int(audit["counts"]["violations"])
    if violations:
        first = violations[0]
        description = describe_violation(first)
        fault = f"{count} audit violations, listed in {job.input.audit} (first: {description})"
        remedy = "set split.on_violation to warn to use this split nevertheless"
        # The faults of a published split cannot be fixed here.
        if not job.params.is_published:
            rule = "swap_adjectives" if first["guarantee"] == "swapped" else "make_splits"
            remedy = f"rerun with --forcerun {rule}, or {remedy}"
        require(audit["on_violation"] == "warn", job.where, fault, remedy)
        log.warning("warning: %s: continues despite %d audit violations", job.where, count)
    write_json({"violations": count}, job.output.accepted)


if __name__ == "__main__":
    run_script(main)
